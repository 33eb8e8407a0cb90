"""Finds card data that must not be stored.

PCI DSS 3.3 forbids security codes, tracks and PINs. PCI DSS 3.4 limits the visible digits of card numbers.

`find_card_data` searches the details of a payment thoroughly. The other fields are the merchant's own: there, only a
clear card number is refused (`has_clear_card_number`).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, starmap
from string import ascii_letters
from typing import Any, Final, Literal, TypeAlias

from payments.ingest.cards.codes import Form, form_of_secret, is_secret_name, mentions_code, plain_letters
from payments.ingest.cards.folding import fold, readings
from payments.ingest.cards.numbers import (
    DIGITS_MAX,
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

# The characters after the check digits: of an IBAN by its country (IBAN registry, release 101), and of an RF reference
# (ISO 11649). `a4n10` are 4 letters and 10 digits, and c are both.
FORMS = (
    "a1n10c12 IT SM|a2n12 FK|a2n16 GE|a4c13 LV|a4c14 BH|a4c15 GI|a4c16 PK RO|a4c20 AZ|a4c21 PS QA|a4c22 KW|a4c24 LC|"
    "a4n10 NL|a4n14 GB IE|a4n15 IQ|a4n16 VG|a4n19a3 MU|a4n20 HN NI SV|a4n20a3 SC|a4n4c18 JO YE|a4n5c18 MT|a4n6c8 BG|"
    "c20 MD|c24 GT|c4n20 DO|c4n4c16 BY|n10c11n2 FR MC|n11 NO|n12 BE|n14 DK FI FO GL SD|n14c15 RU|n15 SI|n16 AT BA EE LT"
    " MN XK|n17 HR|n18 CR DE ME RS VA|n19 AE IL SO TL|n20 CZ ES SE SK TN|n21 LY PT ST|n22 IS|n23 BI DJ MR|n23a1c1 BR|"
    "n24 HU PL|n25 EG|n2c18 SA|n3c10n2 MK|n3c13 KZ LU|n3c16 OM|n4c20 LB|n5c12 CH LI|n6c16 TR|n6c19 UA|n7c16 GR"
    "|n8c12 AD|n8c16 AL CY|c11,21 RF"
)
CHARACTERS = {"n": "[0-9]", "a": "[A-Za-z]", "c": "[0-9A-Za-z]"}
APART = " ._/+\u2010\u2011\u2012\u2013\u2014\u2015-"
GAP = f"[{APART}]{{0,3}}+"


def account_pattern(form: str) -> re.Pattern[str]:
    """Return the pattern of an account number, and of the letter or digit that follows."""
    parts = re.findall("([nac])([0-9,]+)", f"a2n2{form}")
    return re.compile(f"({''.join(f'(?:{GAP}{CHARACTERS[kind]}){{{count}}}' for kind, count in parts)})([0-9A-Za-z]?)")


ACCOUNTS = {
    country: account_pattern(form) for form, *countries in map(str.split, FORMS.split("|")) for country in countries
}
ACCOUNT_START = re.compile(rf"[A-Za-z](?<![0-9A-Za-z].)[A-Za-z]{GAP}[0-9]")
# Further groups of an account number in groups of four, but not a date. Then it has another length.
MORE_GROUPS = re.compile(r"(?<=[ ._/-][0-9]{4})([ ._/-])[0-9]{3,4}(?:\1[0-9]{3,4}){0,4}(?![0-9]|-[0-9])")
ACCOUNT_DIGITS = str.maketrans({letter: f"{int(letter, 36)}" for letter in ascii_letters} | dict.fromkeys(APART, ""))
LETTER = re.compile(r"[^\W\d_]")
UUID = re.compile(r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
# The data of a magnetic stripe, and a card number with its expiry date and security code, as thieves list them.
TRACK = re.compile(r"[0-9]{12,19}(?:\^|=[0-9]{4}|([|;:,])[0-9]{1,2}[|;:,/][0-9]{2,4}\1[0-9]{3,4}(?![0-9]))")
LETTERS: Final = " number "  # replaces account numbers and UUIDs: it separates the digits before from those after

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
    if has_form(text, form) or TRACK.search(text) or any(map(mentions_code, map(without_other_numbers, mentions))):
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


def without_other_numbers(text: str) -> str:
    """Return a text without UUIDs, IBANs and RF references. It ends with what follows these without a space."""
    if not ACCOUNT_START.search(text := UUID.sub(LETTERS, text)):
        return text
    parts, behind, end = [], "", 0
    for account in valid_accounts(text):
        begin, next_begin = account.span(1)
        more = MORE_GROUPS.match(text, next_begin)
        if account[2]:
            behind += LETTERS + text[next_begin : next_begin + 2 * DIGITS_MAX]
        elif begin >= end and not (more and contains_number(account[1] + more[0]) > contains_number(account[1])):
            parts += [text[end:begin], LETTERS]
            end = next_begin
    return "".join([*parts, text[end:], behind])


def valid_accounts(text: str) -> Iterator[re.Match[str]]:
    """Yield the IBANs and RF references with valid check digits, and the letter or digit that follows."""
    for start in ACCOUNT_START.finditer(text):
        pattern = ACCOUNTS.get(start[0][:2].upper())
        if pattern and (match := pattern.match(text, start.start())):
            # The country and the check digits go to the end, and letters count as 10 to 35 (ISO 13616).
            digits = match[1].translate(ACCOUNT_DIGITS)
            if int(digits[6:] + digits[:6]) % 97 == 1 and "02" <= digits[4:6] <= "98":
                yield match


def is_sensitive_name(name: str) -> bool:
    """Return whether a field of this name may hold a security code, a track or a PIN. These must never be stored."""
    return kind_of_name(name) == "sensitive"


def kind_of_name(name: str) -> NameKind:
    return find_cached_kind(name) if len(name) <= CACHED_NAME_LENGTH_MAX else find_cached_kind.__wrapped__(name)


@lru_cache(CACHED_NAMES)
def find_cached_kind(name: str) -> NameKind:
    if form_of_secret(name := fold(name)):
        return "sensitive"
    plain = plain_letters(name)
    return "naming" if is_naming(plain) else "value" if is_value(plain) else "other"
