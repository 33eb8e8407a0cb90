"""Finds card data that must not be stored.

PCI DSS 3.3 forbids security codes, tracks and PINs. PCI DSS 3.4 limits the visible digits of card numbers.

`find_card_data` searches the details of a payment thoroughly. The other fields are the merchant's own: there, only a
clear card number is refused (`has_clear_card_number`).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, starmap
from typing import Any, Final, Literal, TypeAlias

from payments.ingest.cards.account_numbers import LETTERS, without_other_numbers
from payments.ingest.cards.codes import Form, form_of_secret, is_secret_name, mentions_code, plain_letters
from payments.ingest.cards.folding import fold, readings
from payments.ingest.cards.numbers import (
    DIGITS_MIN,
    HALVES,
    HAS_MASK,
    contains_clear_number,
    contains_in_layout,
    contains_insufficient_mask,
    contains_number,
    count_digits,
    may_contain_clear_number,
)

MUST_BE_MASKED: Final = "a card number must be masked (PCI DSS 3.4)"
CARD_NUMBER: Final = f"{MUST_BE_MASKED}; --not-a-card details.MEMBER accepts other numbers"
SECURITY_CODE: Final = "a security code, PIN or track must not be stored (PCI DSS 3.3)"

# The names of the members that lead to a value, and why the value must not be stored.
Path: TypeAlias = tuple[str, ...]
CardData: TypeAlias = tuple[Path, str]

LETTER = re.compile(r"[^\W\d_]")
# The data of a magnetic stripe, and a card number with its expiry date and security code, as thieves list them.
TRACK_DATA = re.compile(r"[0-9]{12,19}(?:\^|=[0-9]{4}|([|;:,])[0-9]{1,2}[|;:,/][0-9]{2,4}\1[0-9]{3,4}(?![0-9]))")

# What the name of a member says about values: its value may be a security code, a PIN or a track; its value is the name
# of another value, as in {"name": "cvv", "value": "123"}; it may have the value that another member names; nothing.
NameKind: TypeAlias = Literal["sensitive", "naming", "value", "other"]

is_naming = re.compile(r"name|key|type|label|field|id|code|title|param|parameter|attribute|k|fieldname").fullmatch
is_value = re.compile(r"value|val|text|content|data|string|v|fieldvalue").fullmatch

# The values of a sensitive name that hold no secret. A boolean only says whether a value existed.
HARMLESS_VALUES: tuple[Any, ...] = (None, "", [], {}, False, True)

# Most records have the same few field names. Longer names are not cached: they may be any text.
CACHED_NAMES = 1024
CACHED_NAME_LENGTH_MAX = 64


def find_card_data(value: Any, path: Path, not_cards: Collection[str] = ()) -> Iterator[CardData]:
    """Yield the card data in parsed JSON, whose numbers are texts. The members `not_cards` have no card numbers."""
    all_single = dict.fromkeys(find_in_value(value, path))
    single = [found for found in all_single if SECURITY_CODE in found or ".".join(found[0]) not in not_cards]
    yield from single
    if not single and continues_as_card_number(scalars(value, ".".join(path), not_cards)):
        yield path, CARD_NUMBER


def find_in_value(value: Any, path: Path, form: Form | None = None) -> Iterator[CardData]:
    """Yield the card data in a value. A text of this form is a security code, because a name above it says so."""
    if isinstance(value, dict):
        yield from find_in_object(value, path, form)
    elif isinstance(value, list):
        texts = [item for item in value if isinstance(item, str)]
        if any(starmap(names_security_code, pairwise(texts))) or has_form("".join(texts), form):
            yield path, SECURITY_CODE
        if contains_in_layout(HALVES, fold("|".join(texts))):
            yield path, CARD_NUMBER
        for item in value:
            yield from find_in_value(item, path, form)
    elif isinstance(value, str):
        for reason in find_in_text(value, form):
            yield path, reason


def find_in_object(members: Mapping[str, Any], path: Path, form: Form | None) -> Iterator[CardData]:
    kinds = {name: kind_of_name(name) for name in members}
    named = {name: name for name, kind in kinds.items() if kind == "sensitive"} | named_values(members, kinds)
    for name, value in members.items():
        reasons = find_in_text(name, form)
        for reason in reasons:
            yield path, reason
        # A name that may itself be a secret is not repeated.
        inner = path if reasons or form else (*path, name)
        secret = named.get(name)
        if secret is not None and is_secret_name(fold(secret)) and value not in HARMLESS_VALUES:
            yield inner, SECURITY_CODE
        yield from find_in_value(value, inner, (form_of_secret(fold(secret)) if secret else None) or form)


def named_values(members: Mapping[str, Any], kinds: Mapping[str, NameKind]) -> dict[str, str]:
    """Return the members that may have the value of a secret that another member names, with that name."""
    named = (members[name] for name, kind in kinds.items() if kind == "naming")
    secrets = [value for value in named if isinstance(value, str) and is_sensitive_name(value)]
    secret = max(secrets, key=lambda value: is_secret_name(fold(value)), default=None)
    return {name: secret for name, kind in kinds.items() if secret and kind == "value"}


def names_security_code(name: str, value: str) -> bool:
    """Return whether neighbours in a list are the name and the value of a security code: ["cvv", "123"]."""
    return is_sensitive_name(name) and has_form(value, form_of_secret(fold(name)))


def has_form(text: str, form: Form | None) -> bool:
    return form is not None and any(map(form.fullmatch, readings(text)))


def scalars(value: Any, name: str, hidden: Collection[str]) -> Iterator[Any]:
    """Yield the values in the lists and objects of a value, in their order; letters for those in `hidden` members."""
    if isinstance(value, dict):
        for inner, member in value.items():
            yield from scalars(member, f"{name}.{inner}" if hidden else name, hidden)
    elif isinstance(value, list):
        for item in value:
            yield from scalars(item, name, hidden)
    else:
        yield LETTERS if name in hidden else value


def continues_as_card_number(values: Iterable[Any]) -> bool:
    """Return whether neighbouring values without letters are the groups of a card number."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < 2 or sum(map(count_digits, texts)) < DIGITS_MIN:  # noqa: PLR2004  a number in parts
        return False
    return contains_number("|".join(LETTERS if LETTER.search(text) else text for text in map(fold, texts)))


def find_in_text(text: str, form: Form | None = None) -> list[str]:
    """Return why a text must not be stored in the details of a payment. A text of the form is a security code."""
    if has_no_digits(text):
        return []
    reasons = [CARD_NUMBER] if exposes_card_number(text) else []
    mentions = filter(mentions_code, readings(text))
    if has_form(text, form) or TRACK_DATA.search(text) or any(map(mentions_code, map(without_other_numbers, mentions))):
        reasons.append(SECURITY_CODE)
    return reasons


def has_no_digits(text: str) -> bool:
    return text.isascii() and not count_digits(text)


def exposes_card_number(text: str) -> bool:
    """Return whether a text contains a card number with too many visible digits. Account numbers and UUIDs are none."""
    if text.isascii():
        digits = count_digits(text)
        if len(text) < DIGITS_MIN or not digits or (digits < DIGITS_MIN and not HAS_MASK.search(text)):
            return False
    texts = map(without_other_numbers, readings(text))
    return any(contains_number(each) or contains_insufficient_mask(each) for each in texts)


def has_clear_card_number(text: str) -> bool:
    """Return whether free text contains a card number that is unlikely to be any other number.

    It has at least 15 digits, without separators or in the groups of a card, the first digits and the length of an
    issuer, and a valid check digit.
    """
    return may_contain_clear_number(text) and contains_clear_number(without_other_numbers(text.replace("%20", " ")))


def is_sensitive_name(name: str) -> bool:
    """Return whether a field of this name may hold a security code, a track or a PIN. These must never be stored."""
    return kind_of_name(name) == "sensitive"


def kind_of_name(name: str) -> NameKind:
    return find_cached_kind(name) if len(name) <= CACHED_NAME_LENGTH_MAX else find_kind(name)


def find_kind(name: str) -> NameKind:
    if form_of_secret(name := fold(name)):
        return "sensitive"
    plain = plain_letters(name)
    return "naming" if is_naming(plain) else "value" if is_value(plain) else "other"


find_cached_kind = lru_cache(CACHED_NAMES)(find_kind)
