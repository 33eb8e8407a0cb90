"""Fast path for canonical records: records in exactly the form of an export, whose texts need no JSON escape.

Full validation takes many times as long as this check. One regular expression, derived from the declaration of the
record, recognizes a canonical record and splits it into columns. It returns no errors: a record that
it does not recognize is validated by `validation`. A test checks that both return the same row.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, get_args

import msgspec
from msgspec import Meta

from payments.ingest.cards.details import find_card_data, has_clear_card_number, has_no_digits, kind_of_name
from payments.ingest.stored_rows import StoredRow, row_function
from payments.models import TEXT_BYTES_MAX, Status
from payments.models.choices import CURRENCIES
from payments.record import (
    COUNTRY,
    FREE_TEXT_TYPES,
    SCRIPT_SCHEMES,
    VALUE,
    DetailsDocument,
    Metadata,
    Money,
    OrganizationId,
    Record,
    RedirectUrl,
    Url,
    encode,
)
from payments.rows import FIELDS, MONEY, TIME, StoredField

decode_texts = msgspec.json.Decoder(dict[str, str]).decode


def unanchored(pattern: str) -> str:
    return pattern.removeprefix(r"\A").removesuffix(r"\Z")


# Narrower than the record's own patterns: a shorter URL in ASCII without a port or a user, or with the scheme of an
# app; an organization ID of at most 18 digits, which fits into 63 bits; a card number whose middle digits are hidden; a
# name of at most 256 characters, which have at most 1024 bytes.
ANY_TEXT = r'[^"\\\x00-\x1f]*+'
NAME = r'[^"\\\x00-\x1f]{0,256}+'
MONEY_PATTERN = rf'\{{"value":"((?!-0\.00){unanchored(VALUE)})","currency":"([A-Z]{{3}})"\}}'
WEB_URL = r"https?://[A-Za-z0-9.-]{1,253}+(?:[/?#][!#-\[\]-~]{0,1700}+)?+"
APP_URL = rf"(?!(?:https?|{'|'.join(SCRIPT_SCHEMES)}):)[a-z][a-z0-9+.-]{{0,99}}+:[!#-\[\]-~]{{1,1700}}+"
ORGANIZATION_ID_PATTERN = r'"([1-9][0-9]{0,17})"'
TEXTS = rf'\{{(?:"{NAME}":"{ANY_TEXT}"(?:,"{NAME}":"{ANY_TEXT}")*)?\}}'  # no `)*+`: wrong before Python 3.11.5
CARD_NUMBER = r"[0-9X]{4} (?:[0-9X]{4} XXXX [0-9X]{4}|[0-9X]{2}XX XXX[0-9X] [0-9X]{3})"
NO_DIGITS = r"[ !#-/:-\[\]-~]*+"
CARD = (
    rf'\{{"cardCountryCode":"{unanchored(COUNTRY)}","cardHolder":"{NO_DIGITS}","cardLabel":"{NO_DIGITS}"'
    rf',"cardNumber":"{CARD_NUMBER}"\}}'
)
LINK = rf'\{{"href":"{ANY_TEXT}","type":"{ANY_TEXT}"\}}'
LINKS = rf'\{{"self":{LINK},"dashboard":{LINK},"documentation":{LINK}\}}'

# The patterns of types whose values are not plain texts with a pattern. Each group is a column. Details have one group
# for a card, which needs no further check, and one for other texts.
PATTERNS = (
    (Money, MONEY_PATTERN),
    (Url, f'"({WEB_URL})"'),
    (RedirectUrl, f'"({WEB_URL}|{APP_URL})"'),
    (OrganizationId, ORGANIZATION_ID_PATTERN),
    (Metadata, f"({TEXTS})"),
    (DetailsDocument, f"(?:({CARD})|({TEXTS}))"),
)


def value_pattern(type_: Any) -> str:
    """Return the pattern of a field's value; its groups are the field's columns."""
    for known, pattern in PATTERNS:
        if known == type_:
            return pattern
    arguments = get_args(type_)
    if arguments and isinstance(meta := arguments[-1], Meta):
        if meta.pattern is None or meta.max_length is not None:
            raise TypeError(f"Add the pattern of {type_} to PATTERNS.")
        return f'"({unanchored(meta.pattern)})"'
    if arguments:  # a Literal
        return f'"({"|".join(arguments)})"'
    return f'"({ANY_TEXT})"'


def record_pattern() -> str:
    """Return the pattern of a record: its fields in their order, each with the comma before it."""
    patterns = {"resource": '(?:,"resource":"payment")?', "links": rf'(?:,"_links":{LINKS})?'}
    for field in FIELDS:
        pattern = f',"{field.json_name}":{value_pattern(field.type)}'
        patterns[field.name] = f"(?:{pattern})?" if field.is_optional else pattern
    return "".join(patterns[name] for name in Record.__struct_fields__).removeprefix(",")


match_canonical = re.compile(rf"\{{{record_pattern()}\}}").fullmatch

GROUPS = [name for field in FIELDS for name in (["card", "details"] if field.name == "details" else field.columns)]


def canonical_expressions(field: StoredField) -> dict[str, str]:
    """Return the Python expression of each column of a field, from the groups of the match."""
    if field.name == "details":
        return {"details": f"groups[{GROUPS.index('card')}] or groups[{GROUPS.index('details')}]"}
    values = [f"groups[{GROUPS.index(column)}]" for column in field.columns]
    return {
        column: field.unless_absent(store.format(*values), column=values[0], absent=field.kind.absent)
        for column, store in zip(field.columns, field.kind.store_json, strict=True)
    }


build_row = row_function("build_row", "groups", canonical_expressions)

get_currencies = itemgetter(*(GROUPS.index(field.columns[1]) for field in FIELDS if field.kind == MONEY))
get_times = itemgetter(*(GROUPS.index(field.name) for field in FIELDS if field.kind == TIME))
get_free_texts = itemgetter(
    *map(GROUPS.index, ("metadata", *(field.name for field in FIELDS if field.type in FREE_TEXT_TYPES)))
)
get_checked = itemgetter(*map(GROUPS.index, ("status", "paid_at", "metadata", "details")))

CURRENCIES_OR_NONE = CURRENCIES | {None}  # an absent amount has none
is_country = re.compile(unanchored(COUNTRY)).fullmatch
is_masked = re.compile(CARD_NUMBER).fullmatch


def parse_canonical(json: bytes, *, trusts_texts: bool = False) -> StoredRow | None:
    """Return the row of a canonical, valid record; None for any other. For `trusts_texts`, see `Options`."""
    if len(json) > TEXT_BYTES_MAX:  # a shorter record has no text that is too long
        return None
    try:
        match = match_canonical(json.decode())
    except UnicodeDecodeError:
        return None
    if match is None:
        return None
    groups = match.groups()
    if not is_valid(groups):
        return None
    free_texts = "" if trusts_texts else "\n".join(filter(None, get_free_texts(groups)))  # an absent URL is None
    return None if has_clear_card_number(free_texts) else build_row(groups)


def is_valid(groups: Sequence[Any]) -> bool:
    """Return whether the columns are valid beyond their patterns."""
    status, paid_at, metadata, details = get_checked(groups)
    return (
        CURRENCIES_OR_NONE.issuperset(get_currencies(groups))
        and (paid_at is not None or status != Status.SUCCEEDED)
        # A name can be repeated only if there are two.
        and ('","' not in metadata or read_unique_texts(metadata) is not None)
        and (details is None or is_harmless(details))
        and are_calendar_times(get_times(groups))
    )


def are_calendar_times(times: Sequence[str | None]) -> bool:
    try:
        for time in times:
            if time:
                datetime.fromisoformat(time)
    except ValueError:
        return False
    return True


def read_unique_texts(document: str) -> dict[str, str] | None:
    """Return the members of a JSON object of texts; None if a name is repeated."""
    texts = decode_texts(document)
    return texts if encode(texts).decode() == document else None


def is_harmless(document: str) -> bool:
    """Return whether details, a JSON object of texts, have no card number and no security code."""
    details = read_unique_texts(document)
    if details is None or not has_valid_card_fields(details):
        return False
    if has_no_digits(document) and {"other"}.issuperset(map(kind_of_name, details)):  # as in most details
        return True
    details.pop("cardNumber", None)  # it is masked
    return not any(find_card_data(details, ("details",)))


def has_valid_card_fields(details: dict[str, str]) -> bool:
    number, country = details.get("cardNumber"), details.get("cardCountryCode")
    return (number is None or is_masked(number) is not None) and (country is None or is_country(country) is not None)
