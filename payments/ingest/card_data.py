"""Card data that must not be stored: PCI DSS 3.3 (security codes, tracks, PINs) and 3.4 (card numbers that show)."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# Of a card number at most the first six and the last four digits may show.
SHOWN_FIRST_MAX = 6
SHOWN_LAST_MAX = 4

# A card number has 13 to 19 digits (ISO/IEC 7812-1), written in one piece or in groups; no other group is so short
# as its last one may be. Up to 15 digits behind a plus sign are a phone number (E.164).
DIGITS_MIN = 13
DIGITS_MAX = 19
GROUP_DIGITS_MIN = 3
PHONE_DIGITS_MAX = 15
SEPARATOR = r"[\s._/\u2010-\u2015-]{1,2}"
GROUPS = re.compile(rf"(\+?)([0-9Xx*#•]+(?:{SEPARATOR}[0-9Xx*#•]+)*)")
DIGIT = re.compile(r"[0-9]")
PLAIN = re.compile(r"[Xx*#•]?([0-9]+)[Xx*#•]?")  # a single character before or behind hides nothing
CARD_PREFIX = re.compile(r"[2-6]|8[12]|9792")
IBAN = re.compile(r"\b[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]){11,30}\b")

# The same few names come with every record.
NAMES_KEPT = 1024
NAME_CHARACTERS_KEPT_MAX = 64

SECRETS = re.compile(
    r"(?:card)?(?:"
    r"(?:cvv2?|cvc2?|cav2?|cvn2?|csc|cid)+(?:code|number|value)?|"
    r"(?:security|verification|cardverification)(?:code|number|value)|"
    r"pin(?:block|number)?|track[123]?(?:data)?|magneticstripe|magstripe"
    r")"
)


def is_secret(name: str) -> bool:
    """Tell whether a field of this name holds what may not be kept after a payment was authorized, masked or not."""
    return is_known_secret(name) if len(name) <= NAME_CHARACTERS_KEPT_MAX else is_known_secret.__wrapped__(name)


@lru_cache(NAMES_KEPT)
def is_known_secret(name: str) -> bool:
    return SECRETS.fullmatch(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def shows_card_number(text: str) -> bool:
    """Tell whether `text` holds a card number of which too many digits show.

    Digits alone are one where they have a card's prefix and check digit; an account number (IBAN) is none.
    """
    if text.isascii() and (len(text) < DIGITS_MIN or not DIGIT.search(text)):
        return False
    normal = unicodedata.normalize("NFKC", text)
    without_accounts = IBAN.sub(lambda match: "" if is_iban(match[0]) else match[0], normal)
    for plus, sequence in GROUPS.findall(without_accounts):
        groups = re.split(SEPARATOR, sequence)
        for first, last, number in runs(groups):
            if plain := PLAIN.fullmatch(number):
                is_phone = plus and first == 0 and len(plain[1]) <= PHONE_DIGITS_MAX
                if not is_phone and is_card_number(plain[1]):
                    return True
            elif first == 0 and len(last) >= GROUP_DIGITS_MIN and shows_too_much(number):
                return True
    return False


def runs(groups: list[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the runs of neighbouring groups as long as a card number: where each begins, its last group, its text."""
    for first in range(len(groups)):
        number = ""
        for group in groups[first : first + DIGITS_MAX]:
            number += group
            if DIGITS_MIN <= len(number) <= DIGITS_MAX + 2:  # two for what may stand around plain digits
                yield first, group, number
            if len(group) < GROUP_DIGITS_MIN or len(number) > DIGITS_MAX:
                break


def shows_too_much(number: str) -> bool:
    return any(character.isdigit() for character in number[SHOWN_FIRST_MAX:-SHOWN_LAST_MAX])


def is_card_number(digits: str) -> bool:
    """Check the prefix and the last digit (Luhn, ISO/IEC 7812-1 annex B)."""
    doubled = "0246813579"
    total = sum(int(digit) for digit in digits[-1::-2]) + sum(int(doubled[int(digit)]) for digit in digits[-2::-2])
    return DIGITS_MIN <= len(digits) <= DIGITS_MAX and CARD_PREFIX.match(digits) is not None and total % 10 == 0


def is_iban(text: str) -> bool:
    """Check an account number's remainder (ISO 13616: modulo 97, letters as 10 to 35)."""
    account = text.replace(" ", "")
    return int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1
