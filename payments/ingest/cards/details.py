"""Finds card data that must not be stored.

PCI DSS 3.3 forbids security codes, tracks and PINs. PCI DSS 3.4 limits the visible digits of card numbers.

`find_card_data` searches the details of a payment thoroughly. The other fields are the merchant's own: there, only a
clear card number is refused (`has_clear_card_number`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from itertools import pairwise, starmap
from typing import Any, Final, TypeAlias

from payments.ingest.cards.codes import Form, form_of_secret, is_secret_name, mentions_code, plain_letters
from payments.ingest.cards.folding import fold, readings
from payments.ingest.cards.numbers import (
    DIGITS_MIN,
    HAS_MASK,
    contains_clear_number,
    contains_halves,
    contains_insufficient_mask,
    contains_number,
    count_digits,
    may_contain_clear_number,
)

CARD_NUMBER: Final = "a card number must be masked (PCI DSS 3.4)"
SECURITY_CODE: Final = "a security code, PIN or track must not be stored (PCI DSS 3.3)"

# The names of the members that lead to a value, and why the value must not be stored.
Path: TypeAlias = tuple[str, ...]
CardData: TypeAlias = tuple[Path, str]

LETTER = re.compile(r"[^\W\d_]")

# Not with IGNORECASE: `[A-Z]` would also match four letters beyond ASCII, such as the Kelvin sign.
IBAN = re.compile(r"\b[A-Za-z]{2}[0-9]{2}(?: ?[0-9A-Za-z]){11,30}\b")
IBAN_DIGITS = {ord("A") + number: str(10 + number) for number in range(26)}
UUID = re.compile(r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
LETTERS: Final = " number "  # replaces account numbers and UUIDs: it separates the digits before from those after


class NameKind(Enum):
    """What the name of a member says about values."""

    SENSITIVE = "its value may be a security code, a PIN or a track"
    NAMING = 'its value is the name of another value, as in {"name": "cvv", "value": "123"}'
    VALUE = "it may have the value that another member names"
    OTHER = "nothing"


NAMING_NAMES: Final = frozenset(
    (
        "name",
        "key",
        "type",
        "label",
        "field",
        "id",
        "code",
        "title",
        "param",
        "parameter",
        "attribute",
        "k",
        "fieldname",
    )
)
VALUE_NAMES: Final = frozenset({"value", "val", "text", "content", "data", "string", "v", "fieldvalue"})

# The values of a sensitive name that hold no secret. A boolean only says whether a value existed.
HARMLESS_VALUES: tuple[Any, ...] = (None, "", [], {}, False, True)

# Most records have the same few field names. Longer names are not cached: they may be any text.
CACHED_NAMES = 1024
CACHED_NAME_LENGTH_MAX = 64


def find_card_data(value: Any, path: Path) -> Iterator[CardData]:
    """Yield the card data in parsed JSON, whose numbers are texts; `path` leads to `value`."""
    single = list(dict.fromkeys(find_in_value(value, path)))
    yield from single
    if not single and continues_as_card_number(scalars(value)):
        yield path, CARD_NUMBER


def find_in_value(value: Any, path: Path, form: Form | None = None) -> Iterator[CardData]:
    """Yield the card data in a value. A text of this form is a security code, because a name above it says so."""
    if isinstance(value, dict):
        yield from find_in_object(value, path, form)
    elif isinstance(value, list):
        texts = list(filter(is_text, value))
        if any(starmap(names_security_code, pairwise(texts))) or has_form("".join(texts), form):
            yield path, SECURITY_CODE
        if contains_halves(fold("|".join(texts))):
            yield path, CARD_NUMBER
        for item in value:
            yield from find_in_value(item, path, form)
    elif is_text(value) and (reason := find_in_text(value, form)):
        yield path, reason


def find_in_object(members: Mapping[str, Any], path: Path, form: Form | None) -> Iterator[CardData]:
    named = {name: name for name in members if is_sensitive_name(name)} | named_values(members)
    for name, value in members.items():
        reason = find_in_text(name, form)
        if reason:
            yield path, reason
        # A name that may itself be a secret is not repeated.
        inner = path if reason or form else (*path, name)
        secret = named.get(name)
        if secret is not None and is_secret_name(fold(secret)) and value not in HARMLESS_VALUES:
            yield inner, SECURITY_CODE
        yield from find_in_value(value, inner, (form_of_secret(fold(secret)) if secret else None) or form)


def named_values(members: Mapping[str, Any]) -> dict[str, str]:
    """Return the members that may have the value of a secret that another member names, with that name."""
    kinds = {name: kind_of_name(name) for name in members}
    named = (members[name] for name, kind in kinds.items() if kind is NameKind.NAMING)
    secrets = [value for value in named if is_text(value) and is_sensitive_name(value)]
    secret = max(secrets, key=lambda value: is_secret_name(fold(value)), default=None)
    return {name: secret for name, kind in kinds.items() if secret and kind is NameKind.VALUE}


def names_security_code(name: str, value: str) -> bool:
    """Return whether neighbours in a list are the name and the value of a security code: ["cvv", "123"]."""
    return is_sensitive_name(name) and has_form(value, form_of_secret(fold(name)))


def has_form(text: str, form: Form | None) -> bool:
    return form is not None and any(map(form.fullmatch, readings(text)))


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def scalars(value: Any) -> Iterator[Any]:
    """Yield the values in the lists and objects of a value, in their order."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from scalars(inner)
    else:
        yield value


def continues_as_card_number(values: Iterable[Any]) -> bool:
    """Return whether neighbouring values without letters are the groups of a card number."""
    texts = list(filter(is_text, values))
    if len(texts) < 2 or sum(map(count_digits, texts)) < DIGITS_MIN:  # noqa: PLR2004  a number in parts
        return False
    return contains_number("|".join(LETTERS if LETTER.search(text) else text for text in map(fold, texts)))


def find_in_text(text: str, form: Form | None = None) -> str | None:
    """Return the reason why a text must not be stored in the details of a payment; None if it may.

    A text of the form is a security code.
    """
    if has_no_digits(text):
        return None
    if exposes_card_number(text):
        return CARD_NUMBER
    return SECURITY_CODE if has_form(text, form) or any(map(mentions_code, readings(text))) else None


def has_no_digits(text: str) -> bool:
    return text.isascii() and not count_digits(text)


def exposes_card_number(text: str) -> bool:
    """Return whether a text contains a card number with too many visible digits.

    Digits without a mask are a card number if the first digits and the check digit are right. Account numbers (IBAN),
    phone numbers and UUIDs are not card numbers.
    """
    if text.isascii():
        digits = count_digits(text)
        if len(text) < DIGITS_MIN or not digits or (digits < DIGITS_MIN and not HAS_MASK.search(text)):
            return False
    return any(map(exposes_number_as_written, map(without_other_numbers, readings(text))))


def exposes_number_as_written(text: str) -> bool:
    return (count_digits(text) >= DIGITS_MIN and contains_number(text)) or contains_insufficient_mask(text)


def has_clear_card_number(text: str) -> bool:
    """Return whether free text contains a card number that is unlikely to be any other number.

    It has at least 15 digits, without separators or in the groups of a card, the first digits and the length of an
    issuer, and a valid check digit.
    """
    return may_contain_clear_number(text) and contains_clear_number(without_other_numbers(text.replace("%20", " ")))


def without_other_numbers(text: str) -> str:
    """Return a text without account numbers and UUIDs."""
    return UUID.sub(LETTERS, IBAN.sub(lambda match: LETTERS if is_iban(match[0]) else match[0], text))


def is_sensitive_name(name: str) -> bool:
    """Return whether a field of this name may hold a security code, a track or a PIN. These must never be stored."""
    return kind_of_name(name) is NameKind.SENSITIVE


def kind_of_name(name: str) -> NameKind:
    return find_cached_kind(name) if len(name) <= CACHED_NAME_LENGTH_MAX else find_kind(name)


def find_kind(name: str) -> NameKind:
    name = fold(name)
    if form_of_secret(name):
        return NameKind.SENSITIVE
    plain = plain_letters(name)
    if plain in NAMING_NAMES:
        return NameKind.NAMING
    return NameKind.VALUE if plain in VALUE_NAMES else NameKind.OTHER


find_cached_kind = lru_cache(CACHED_NAMES)(find_kind)


def is_iban(text: str) -> bool:
    """Check an account number by its remainder (ISO 13616: modulo 97, letters count as 10 to 35)."""
    account = text.replace(" ", "").upper()
    return int((account[4:] + account[:4]).translate(IBAN_DIGITS)) % 97 == 1
