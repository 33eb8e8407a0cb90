"""Finds card data that must not be stored.

PCI DSS 3.3 forbids security codes, tracks and PINs. PCI DSS 3.4 limits the visible digits of card numbers.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

# The form of a card number (ISO/IEC 7812-1): its length, its first digits, and the characters between groups of digits.
# No group is shorter than GROUP_LENGTH_MIN, except the last.
CARD_DIGITS_MIN = 13
CARD_DIGITS_MAX = 19
CARD_PREFIXES = ("2", "3", "4", "5", "6", "81", "82", "9792")
SEPARATOR = r"[\s._/\u2010-\u2015-]{1,2}"
GROUP_LENGTH_MIN = 3
MASKS = "Xx*#•"  # stand for hidden digits

# How many digits of a card number may be visible.
VISIBLE_FIRST_MAX = 6
VISIBLE_LAST_MAX = 4

# A plus sign and up to 15 digits are a phone number (E.164).
PHONE_DIGITS_MAX = 15

SEQUENCE = re.compile(rf"(\+?)([0-9{MASKS}]+(?:{SEPARATOR}[0-9{MASKS}]+)*)")
split_groups = re.compile(SEPARATOR).split

# Visible digits only. A single mask character before or after them counts as punctuation.
UNMASKED = re.compile(rf"([{MASKS}]?)([0-9]+)([{MASKS}]?)")
NUMBER_CHARACTERS_MAX = CARD_DIGITS_MAX + 2  # with a mask character at each end

DIGIT = re.compile(r"[0-9]")
DOUBLED_DIGITS = bytes.maketrans(b"0123456789", b"0246813579")  # the digit sums of 0, 2, 4, 6, 8, 10, 12, 14, 16, 18

IBAN = re.compile(r"\b[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]){11,30}\b")
IBAN_DIGITS = {ord("A") + number: str(10 + number) for number in range(26)}

SENSITIVE_NAME = re.compile(
    r"(?:card)?(?:"
    r"(?:cvv2?|cvc2?|cav2?|cvn2?|csc|cid)+(?:code|number|value)?|"
    r"(?:security|verification|cardverification)(?:code|number|value)|"
    r"pin(?:block|number)?|track[123]?(?:data)?|magneticstripe|magstripe"
    r")"
)

# Most records have the same few field names. Longer names are not cached: they may be any text.
CACHED_NAMES = 1024
CACHED_NAME_LENGTH_MAX = 64


def is_sensitive_name(name: str) -> bool:
    """Return whether a field of this name holds a security code, a track or a PIN. These must never be stored."""
    return match_cached_name(name) if len(name) <= CACHED_NAME_LENGTH_MAX else match_name(name)


def match_name(name: str) -> bool:
    return SENSITIVE_NAME.fullmatch(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


match_cached_name = lru_cache(CACHED_NAMES)(match_name)


def exposes_card_number(text: str) -> bool:
    """Return whether `text` contains a card number with too many visible digits.

    Digits without a mask are a card number if the prefix and the check digit are right. Account numbers (IBAN) and
    phone numbers are not card numbers.
    """
    if text.isascii() and (len(text) < CARD_DIGITS_MIN or not DIGIT.search(text)):
        return False
    normalized = unicodedata.normalize("NFKC", text)
    without_ibans = IBAN.sub(lambda match: "" if is_iban(match[0]) else match[0], normalized)
    return any(
        contains_exposed_number(split_groups(sequence), has_plus=bool(plus))
        for plus, sequence in SEQUENCE.findall(without_ibans)
        if len(sequence) >= CARD_DIGITS_MIN
    )


def contains_exposed_number(groups: list[str], *, has_plus: bool) -> bool:
    """Return whether neighbouring groups are a card number with too many visible digits.

    After a plus sign, a number of up to 15 digits from the first group counts as a phone number.
    """
    return has_insufficient_mask(groups) or any(
        number.startswith(CARD_PREFIXES)
        and not (has_plus and first == 0 and len(number) <= PHONE_DIGITS_MAX)
        and has_valid_check_digit(number)
        for first, number in unmasked_numbers(groups)
    )


def has_insufficient_mask(groups: list[str]) -> bool:
    """Return whether the groups begin with a masked card number that has too many visible digits."""
    number = ""
    for group in groups:
        number += group
        if len(group) < GROUP_LENGTH_MIN or len(number) > NUMBER_CHARACTERS_MAX:
            break
        if len(number) >= CARD_DIGITS_MIN and not UNMASKED.fullmatch(number) and exposes_middle(number):
            return True
    return False


def exposes_middle(number: str) -> bool:
    """Return whether a masked card number has visible digits between the first six and the last four."""
    return DIGIT.search(number[VISIBLE_FIRST_MAX:-VISIBLE_LAST_MAX]) is not None


def unmasked_numbers(groups: list[str]) -> Iterator[tuple[int, str]]:
    """Join neighbouring groups, and yield each number as long as a card number, with the index of its first group.

    A number has at most `CARD_DIGITS_MAX` groups. So the cost is linear in the number of groups.
    """
    parsed = [parse_group(group) for group in groups]
    for first in range(len(parsed)):
        number = ""
        for group in parsed[first : first + CARD_DIGITS_MAX]:
            if group is None or (number and group.must_begin):
                break
            number += group.digits
            if len(number) > CARD_DIGITS_MAX:
                break
            if len(number) >= CARD_DIGITS_MIN:
                yield first, number
            if group.must_end:
                break


class Group(NamedTuple):
    """A group of digits, and whether a number must begin or end with it."""

    digits: str
    must_begin: bool
    must_end: bool


def parse_group(text: str) -> Group | None:
    """Return a group of digits, or None if it hides digits."""
    mask_before, digits, mask_after = "", text, ""
    if not text.isdigit():  # most groups are digits only; the regular expression is slower
        match = UNMASKED.fullmatch(text)
        if match is None:
            return None
        mask_before, digits, mask_after = match.groups()
    return Group(digits, bool(mask_before), bool(mask_after) or len(text) < GROUP_LENGTH_MIN)


def has_valid_check_digit(number: str) -> bool:
    """Check a number by the Luhn formula (ISO/IEC 7812-1, annex B): from the right, every second digit is doubled."""
    digits = number.encode()
    weighted = digits[-1::-2] + digits[-2::-2].translate(DOUBLED_DIGITS)
    return (sum(weighted) - len(weighted) * ord("0")) % 10 == 0


def is_iban(text: str) -> bool:
    """Check an account number by its remainder (ISO 13616: modulo 97, letters count as 10 to 35)."""
    account = text.replace(" ", "")
    return int((account[4:] + account[:4]).translate(IBAN_DIGITS)) % 97 == 1
