"""Card data that must not be stored: PCI DSS 3.3 (security codes, tracks, PINs) and 3.4 (card numbers that show)."""

import re
import unicodedata
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

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
MASKS = "Xx*#•"
GROUPS = re.compile(rf"(\+?)([0-9{MASKS}]+(?:{SEPARATOR}[0-9{MASKS}]+)*)")
DIGIT = re.compile(r"[0-9]")
PLAIN = re.compile(rf"([{MASKS}]?)([0-9]+)([{MASKS}]?)")  # a single character before or behind hides nothing
CARD_PREFIX = re.compile(r"[2-6]|8[12]|9792")
CARD_PREFIX_FIRST = "2345689"
IBAN = re.compile(r"\b[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]){11,30}\b")
IBAN_DIGITS = {ord("A") + number: str(10 + number) for number in range(26)}

separated = re.compile(SEPARATOR).split

# The same few names come with every record, and the same groups in a long text.
NAMES_KEPT = 1024
NAME_CHARACTERS_KEPT_MAX = 64
GROUPS_KEPT = 1024

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
        if len(sequence) >= DIGITS_MIN:
            groups = separated(sequence)
            if hides_too_little(groups) or holds_card_number(groups, is_phone=bool(plus)):
                return True
    return False


def hides_too_little(groups: list[str]) -> bool:
    """Tell whether a masked card number begins here of which too many digits show."""
    number = ""
    for group in groups[:DIGITS_MAX]:
        number += group
        if len(group) < GROUP_DIGITS_MIN or len(number) > DIGITS_MAX + 2:  # two for what may stand around plain digits
            break
        if len(number) >= DIGITS_MIN and not PLAIN.fullmatch(number) and shows_too_much(number):
            return True
    return False


def shows_too_much(number: str) -> bool:
    return DIGIT.search(number[SHOWN_FIRST_MAX:-SHOWN_LAST_MAX]) is not None


def holds_card_number(groups: list[str], *, is_phone: bool) -> bool:
    """Tell whether neighbouring groups, with nothing hidden, are a card number; the first ones may be a phone's."""
    return any(
        CARD_PREFIX.match(number) and not (is_phone and first == 0 and len(number) <= PHONE_DIGITS_MAX)
        for first, number in checked_numbers(groups)
    )


def checked_numbers(groups: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbers as long as a card's whose check digit is right, and with which group each begins.

    One pass finds all: check sums run along, and a number's own is what they have grown by since it began.
    """
    begun: deque[tuple[int, int, int, int]] = deque()  # with which group, and what was before: digits, check sums
    count = single = doubled = 0
    for index, digits in enumerate(map(measured, groups)):
        if digits.is_first:
            begun.clear()
        if digits.has_prefix:
            begun.append((index, count, single, doubled))
        if digits.length % 2:
            single, doubled = doubled, single
        count, single, doubled = count + digits.length, single + digits.single, doubled + digits.doubled
        while begun and count - begun[0][1] > DIGITS_MAX:
            begun.popleft()
        for first, before, single_before, doubled_before in begun:
            length = count - before
            if length < DIGITS_MIN:
                break
            if (single - (doubled_before if length % 2 else single_before)) % 10 == 0:
                yield first, "".join(groups[first : index + 1]).strip(MASKS)
        if digits.is_last:
            begun.clear()


class Digits(NamedTuple):
    """A group of digits: how many, their check sums (Luhn, ISO/IEC 7812-1 annex B), and their place in a number."""

    length: int
    single: int  # the last digit taken once, as at the end of a number
    doubled: int  # the last digit doubled
    has_prefix: bool  # perhaps: of a prefix, the first digit
    is_first: bool
    is_last: bool


# What a group stands for that hides digits, or has too many of them.
NONE = Digits(0, 0, 0, has_prefix=False, is_first=True, is_last=True)


@lru_cache(GROUPS_KEPT)
def measured(group: str) -> Digits:
    plain = PLAIN.fullmatch(group) if len(group) <= DIGITS_MAX + 2 else None
    if plain is None:
        return NONE
    before, digits, behind = plain.groups()
    return Digits(
        len(digits),
        check_sum(digits),
        check_sum(f"{digits}0"),
        has_prefix=digits[0] in CARD_PREFIX_FIRST,
        is_first=bool(before),
        is_last=bool(behind) or len(group) < GROUP_DIGITS_MIN,
    )


def check_sum(digits: str) -> int:
    """Sum up digits, every second one from the last but one on doubled, and then its own digits added."""
    doubled = "0246813579"
    return sum(int(digit) for digit in digits[-1::-2]) + sum(int(doubled[int(digit)]) for digit in digits[-2::-2])


def is_iban(text: str) -> bool:
    """Check an account number's remainder (ISO 13616: modulo 97, letters as 10 to 35)."""
    account = text.replace(" ", "")
    return int((account[4:] + account[:4]).translate(IBAN_DIGITS)) % 97 == 1
