"""Card data that must not be stored: PCI DSS 3.3 (security codes, tracks, PINs) and 3.4 (card numbers that show)."""

import re

# Of a card number at most the first six and the last four digits may show.
SHOWN_FIRST_MAX = 6
SHOWN_LAST_MAX = 4

# 13 to 19 digits or mask characters (ISO/IEC 7812-1), in one piece or in groups; behind a plus sign is a phone number.
NUMBER = re.compile(r"(?<![0-9Xx*#•+])[0-9Xx*#•](?:[ .-]?[0-9Xx*#•]){12,18}(?![ .-]?[0-9Xx*#•])")
MASK = re.compile(r"[Xx*#•]")
CARD_PREFIX = re.compile(r"[2-6]|8[12]|9792")
IBAN = re.compile(r"\b[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]){11,30}\b")

SECRETS = re.compile(
    r"(?:card)?(?:"
    r"cvv2?|cvc2?|cav2?|cvn2?|csc|cid|securitycode|(?:card)?verification(?:code|number|value)|"
    r"pin|pinblock|track[123]?(?:data)?|trackdata|magneticstripe|magstripe"
    r")"
)


def is_secret(name: str) -> bool:
    """Tell whether a field of this name holds what may not be kept after a payment was authorized, masked or not."""
    return SECRETS.fullmatch(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def shows_card_number(text: str) -> bool:
    """Tell whether `text` holds a card number of which too many digits show.

    Digits alone are one where they have a card's prefix and check digit; an account number (IBAN) is none.
    """
    without_accounts = IBAN.sub(lambda match: "" if is_iban(match[0]) else match[0], text)
    for match in NUMBER.finditer(without_accounts):
        number = re.sub(r"[ .-]", "", match[0])
        if shows_too_much(number) and (MASK.search(number) or is_card_number(number)):
            return True
    return False


def shows_too_much(number: str) -> bool:
    return any(character.isdigit() for character in number[SHOWN_FIRST_MAX:-SHOWN_LAST_MAX])


def is_card_number(digits: str) -> bool:
    """Check the prefix and the last digit (Luhn, ISO/IEC 7812-1 annex B)."""
    doubled = "0246813579"
    total = sum(int(digit) for digit in digits[-1::-2]) + sum(int(doubled[int(digit)]) for digit in digits[-2::-2])
    return CARD_PREFIX.match(digits) is not None and total % 10 == 0


def is_iban(text: str) -> bool:
    """Check an account number's remainder (ISO 13616: modulo 97, letters as 10 to 35)."""
    account = text.replace(" ", "")
    return int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1
