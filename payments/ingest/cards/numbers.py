"""Recognizes card numbers in texts.

A card number has 13 to 19 digits, begins with the digits of an issuer, and ends with a check digit (ISO/IEC 7812-1).
The functions take folded texts (folding.py), and their cost is linear in the length of the text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import accumulate, repeat

from payments.ingest.cards.folding import fold, spell
from payments.record import CARD_NUMBER

DIGITS_MIN = 13
DIGITS_MAX = 19

# The lengths of card numbers, and their first four digits.
ISSUERS: Sequence[tuple[Sequence[int], Iterable[int]]] = (
    ((13, 16, 19), range(4000, 5000)),  # Visa
    (
        range(13, 20),
        (*range(5000, 5100), *range(5600, 5900), *range(6000, 7000)),
    ),  # Maestro, Dankort, Discover, RuPay
    ((14, 16), (*range(3000, 3060), 3095, *range(3600, 3700), *range(3800, 4000))),  # Diners Club
    ((15,), (*range(3400, 3500), *range(3700, 3800))),  # American Express
    ((16,), (*range(2221, 2721), *range(5100, 5600), 9792)),  # Mastercard, Troy
    (range(16, 20), (*range(2200, 2205), *range(3528, 3590), *range(8100, 8300))),  # Mir, JCB, UnionPay, RuPay
)
LENGTHS = {f"{first}": tuple(lengths) for lengths, issuers in ISSUERS for first in issuers}

MASKS = "Xx*#•"  # stand for hidden digits
HAS_MASK = re.compile(f"[{MASKS}]")
# The digits of a card number that may be visible (PCI DSS 3.4.1, PCI SSC FAQ 1091).
VISIBLE_FIRST_MAX = 6
VISIBLE_FIRST_MAX_OF_LONG = 8
LONG_DIGITS_MIN = 16
VISIBLE_LAST_MAX = 4

# A masked number in other spellings, without separators: one character for each digit, the same one for hidden digits.
is_in_groups = re.compile(CARD_NUMBER).match
MASKED = re.compile(rf"(?=.{{{DIGITS_MIN},{DIGITS_MAX}}}\Z)[0-9]*([x*#•●∙·\u2217\xd7])\1*[0-9]*")

# A plus sign and up to 15 digits are a phone number (E.164).
PHONE_DIGITS_MAX = 15

# Groups of digits in a card number as people write it. No group is shorter than three digits, except the last.
SEPARATOR = r"[ ._/\u2010-\u2015-]{1,2}"
SEQUENCE = re.compile(rf"(\+?)(?<![0-9])([0-9]{{3,}}(?:{SEPARATOR}[0-9]{{3,}})*(?:{SEPARATOR}[0-9]{{1,2}}(?![0-9]))?)")
NOT_AFTER_IBAN_START = r"(?<![A-Za-z]{2}[0-9]{2} )"
MASKED_SEQUENCE = re.compile(
    rf"{NOT_AFTER_IBAN_START}(?<![0-9{MASKS}])[0-9{MASKS}]{{3,}}(?:{SEPARATOR}[0-9{MASKS}]{{3,}})*"
)
split_groups = re.compile(SEPARATOR).split

# Visible digits only. A single mask character before or after them counts as punctuation.
UNMASKED = re.compile(rf"[{MASKS}]?[0-9]+[{MASKS}]?")
MASKED_CHARACTERS_MAX = DIGITS_MAX + 2  # with a mask character at each end
MASKED_GROUPS_MAX = MASKED_CHARACTERS_MAX // 3

# With any other separators, the groups have one of these forms, and nothing of the same form precedes or follows.
SEPARATOR_CHARACTERS_MAX = 10
ANY = rf"[\W_]{{1,{SEPARATOR_CHARACTERS_MAX}}}"
LAYOUTS = [
    re.compile(rf"(?<![0-9])(?:{layout})(?![0-9])")
    for layout in (
        rf"[0-9](?:{ANY}[0-9](?![0-9])){{12,}}",
        rf"[0-9]{{2}}(?:{ANY}[0-9]{{2}}(?![0-9])){{5,}}(?:{ANY}[0-9])?",
        rf"[0-9]{{1,3}}(?:{ANY}[0-9]{{3}}(?![0-9])){{4,}}",
        rf"[0-9]{{4}}(?:{ANY}[0-9]{{4}}(?![0-9])){{2,}}(?:{ANY}[0-9]{{1,3}})?",
        rf"[0-9]{{4}}{ANY}[0-9]{{6}}{ANY}[0-9]{{4,5}}",
    )
]
HALVES = re.compile(rf"(?<![0-9])[0-9]{{8}}{ANY}[0-9]{{8}}(?![0-9])")
LAYOUT_CHARACTERS_MAX = DIGITS_MAX + (DIGITS_MAX - 1) * SEPARATOR_CHARACTERS_MAX

# Some programs write whole numbers in scientific notation: 4.242424242424242E15.
SCIENTIFIC = re.compile(r"(?<![0-9.])([0-9]+(?:\.[0-9]+)?)([Ee][+-]?0*[0-9]{1,2})(?![0-9])")
SIGNIFICANT_DIGITS_MIN = 12  # with fewer, it is hardly a card number, because that would end in many zeros

# A card number in free text: digits alone, or in the groups that are printed on cards.
CLEAR_DIGITS_MIN = 15
CLEAR = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9]{15,19}|[0-9]{4}([ +-])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{1,3})?|"
    r"[0-9]{4}([ +-])[0-9]{6}\2[0-9]{5})(?![0-9A-Za-z])"
)
# A table for `bytes.translate`: digits, and the characters that separate groups in CLEAR or begin %20, become 0. Other
# bytes become a space.
DIGITS_AND_SEPARATORS = bytes(ord("0" if code in b"0123456789 +-%" else " ") for code in range(256))
CLEAR_RUN = b"0" * CLEAR_DIGITS_MIN

NOT_A_DIGIT = re.compile(r"[^0-9]")
NOT_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
DOUBLED_DIGITS = bytes.maketrans(b"0123456789", b"0246813579")  # the digit sums of 0, 2, 4, 6, 8, 10, 12, 14, 16, 18


def count_digits(text: str) -> int:
    return len(text.encode("utf-8", "replace").translate(None, NOT_DIGITS))


def contains_number(text: str) -> bool:
    """Return whether a text contains a card number without hidden digits, with any separators."""
    return count_digits(text) >= DIGITS_MIN and (
        any(contains_in_groups(*sequence) for sequence in SEQUENCE.findall(text))
        or any(map(contains_in_layout, LAYOUTS, repeat(text)))
        or any(is_in_scientific_notation(*number) for number in SCIENTIFIC.findall(text))
    )


def contains_in_groups(plus: str, sequence: str) -> bool:
    """Return whether neighbouring groups of a sequence are a card number.

    After a plus sign, a number of up to 15 digits from the first group on is a phone number.
    """
    if len(sequence) < DIGITS_MIN:
        return False
    groups = split_groups(sequence)
    phone = "".join(groups)[:PHONE_DIGITS_MAX] if plus else ""
    return any(has_valid_check_digit(number) for number in numbers_in_groups(groups) if not phone.startswith(number))


def numbers_in_groups(groups: Sequence[str]) -> list[str]:
    """Return neighbouring groups, joined, that have the length and the first digits of a card number."""
    digits = "".join(groups)
    ends = list(accumulate(map(len, groups)))
    is_end = set(ends).__contains__
    return [
        digits[start : start + length]
        for start in (0, *ends)
        for length in LENGTHS.get(digits[start : start + 4], ())
        if is_end(start + length)
    ]


def contains_in_layout(layout: re.Pattern[str], text: str) -> bool:
    return any(
        is_card_number(NOT_A_DIGIT.sub("", found))
        for found in layout.findall(text)
        if len(found) <= LAYOUT_CHARACTERS_MAX
    )


def is_in_scientific_notation(significand: str, exponent: str) -> bool:
    """Return whether a number is the whole number of a card."""
    if count_digits(significand) < SIGNIFICANT_DIGITS_MIN:
        return False
    whole, _, fraction = format(Decimal(significand + exponent), "f").partition(".")
    return not fraction.strip("0") and is_card_number(whole)


def may_contain_clear_number(text: str) -> bool:
    """Return whether `contains_clear_number` may be true. This is fast."""
    return CLEAR_RUN in text.encode("utf-8", "replace").translate(DIGITS_AND_SEPARATORS)


def contains_clear_number(text: str) -> bool:
    """Return whether a text contains a card number of at least 15 digits, alone or in the groups of a card."""
    return any(is_card_number(NOT_A_DIGIT.sub("", match[0])) for match in CLEAR.finditer(text))


def contains_insufficient_mask(text: str) -> bool:
    """Return whether a text contains a masked card number that has too many visible digits."""
    return HAS_MASK.search(text) is not None and any(
        has_insufficient_mask(split_groups(sequence))
        for sequence in MASKED_SEQUENCE.findall(text)
        if len(sequence) >= DIGITS_MIN and HAS_MASK.search(sequence)
    )


def has_insufficient_mask(groups: Sequence[str]) -> bool:
    """Return whether neighbouring groups are a masked card number that has too many visible digits.

    Unless they are the first groups, they begin with the digits of an issuer.
    """
    return any(
        exposes_middle(number) and (index == 0 or len(number) in LENGTHS.get(number[:4], ()))
        for index in range(len(groups))
        for number in masked_numbers(groups[index : index + MASKED_GROUPS_MAX])
    )


def masked_numbers(groups: Sequence[str]) -> Iterator[str]:
    """Yield the first groups, joined, that may be a masked card number."""
    for number in accumulate(groups):
        if DIGITS_MIN <= len(number) <= MASKED_CHARACTERS_MAX and not UNMASKED.fullmatch(number):
            yield number


def exposes_middle(number: str) -> bool:
    """Return whether a masked card number has visible digits between those at its start and end that may be visible."""
    first_max = VISIBLE_FIRST_MAX_OF_LONG if len(number) >= LONG_DIGITS_MIN else VISIBLE_FIRST_MAX
    return count_digits(number[first_max:-VISIBLE_LAST_MAX]) > 0


def in_groups(text: str) -> str | None:
    """Return a card number with any mask in groups of four, hidden digits as X; None if it shows too many."""
    if not is_in_groups(text):
        number = re.sub(SEPARATOR, "", spell(fold(text)).lower())
        if not (match := MASKED.fullmatch(number)):
            return None
        text = " ".join(re.findall(".{1,4}", number.replace(match[1], "X")))
    return None if exposes_middle(text.replace(" ", "")) else text


def is_card_number(digits: str) -> bool:
    return len(digits) in LENGTHS.get(digits[:4], ()) and has_valid_check_digit(digits)


def has_valid_check_digit(number: str) -> bool:
    """Check a number by the Luhn formula (ISO/IEC 7812-1, annex B): from the right, every second digit is doubled."""
    digits = number.encode()
    weighted = digits[-1::-2] + digits[-2::-2].translate(DOUBLED_DIGITS)
    return (sum(weighted) - len(weighted) * ord("0")) % 10 == 0
