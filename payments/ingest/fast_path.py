"""Fast path for canonical records: records in exactly the form of an export, whose texts need no JSON escape.

Validating a record takes many times as long as checking that it is valid. One regular expression, derived from the
declaration of the record, recognises a canonical record and splits it into columns. It returns no errors: a record that
it does not recognise is validated by `validation`. A test checks that both return the same row.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, get_args

import msgspec
from msgspec import Meta
from msgspec.structs import fields

from payments.currencies import CURRENCIES
from payments.ingest.card_data import exposes_card_number, is_sensitive_name
from payments.ingest.columns import StoredRow, row_function
from payments.models import Status
from payments.record import COUNTRY, VALUE, DetailsDocument, Metadata, Money, OrganizationId, Record, Url, encode
from payments.rows import MEMBERS, MONEY, NOT_STORED, TIME, Member

read_texts = msgspec.json.Decoder(dict[str, str]).decode


def unanchored(pattern: str) -> str:
    return pattern.removeprefix(r"\A").removesuffix(r"\Z")


# Narrower than the record's own patterns: a shorter URL in ASCII without a port or a user; an organization ID of at
# most 18 digits, which fits into 63 bits; a card number whose middle digits are all hidden.
ANY_TEXT = r'[^"\\\x00-\x1f]*+'
MONEY_PATTERN = rf'\{{"value":"((?!-0\.00){unanchored(VALUE)})","currency":"([A-Z]{{3}})"\}}'
URL_PATTERN = r'"(https?://[A-Za-z0-9.-]{1,253}+(?:[/?#][!#-\[\]-~]{0,1700}+)?+)"'
ORGANIZATION_ID_PATTERN = r'"([1-9][0-9]{0,17})"'
TEXTS = rf'\{{(?:"{ANY_TEXT}":"{ANY_TEXT}"(?:,"{ANY_TEXT}":"{ANY_TEXT}")*+)?+\}}'
CARD_NUMBER = r"[0-9X]{4} [0-9X]{2}XX (?:XXXX [0-9X]{4}|XXX[0-9X] [0-9X]{3})"
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
    (Url, URL_PATTERN),
    (OrganizationId, ORGANIZATION_ID_PATTERN),
    (Metadata, f"({TEXTS})"),
    (DetailsDocument, f"(?:({CARD})|({TEXTS}))"),
)


def value_pattern(type_: Any) -> str:
    """Return the pattern of a member's value; its groups are the member's columns."""
    for known, pattern in PATTERNS:
        if known == type_:
            return pattern
    arguments = get_args(type_)
    if arguments and isinstance(arguments[-1], Meta):
        return f'"({unanchored(str(arguments[-1].pattern))})"'
    if arguments:  # a Literal
        return f'"({"|".join(arguments)})"'
    return f'"({ANY_TEXT})"'


def member_patterns() -> list[str]:
    """Return the patterns of all members in the record's order, `_links` included."""
    by_name = {member.name: member for member in MEMBERS}
    others = {"resource": '"resource":"payment"', "links": rf'(?:,"_links":{LINKS})?'}
    patterns = []
    for field in fields(Record):
        if field.name in NOT_STORED:
            patterns.append(others[field.name])
        else:
            member = by_name[field.name]
            pattern = f'"{member.json_name}":{value_pattern(member.type)}'
            patterns.append(f"(?:,{pattern})?" if member.is_optional else pattern)
    return patterns


def joined(patterns: Sequence[str]) -> str:
    """Join the patterns of members with commas; an optional one has its comma already."""
    first, *rest = patterns
    return first + "".join(pattern if pattern.startswith("(?:,") else f",{pattern}" for pattern in rest)


match_canonical = re.compile(rf"\{{{joined(member_patterns())}\}}").fullmatch


def group_names(member: Member) -> list[str]:
    return ["card", "details"] if member.name == "details" else member.columns


GROUPS = [name for member in MEMBERS for name in group_names(member)]


def of_groups(member: Member) -> dict[str, str]:
    """Return the expression of each column of a member, from the groups of the match."""
    if member.name == "details":
        return {"details": f"groups[{GROUPS.index('card')}] or groups[{GROUPS.index('details')}]"}
    values = [f"groups[{GROUPS.index(column)}]" for column in member.columns]
    return {
        column: member.if_present(store.format(*values), column=values[0], otherwise=member.kind.absent)
        for column, store in zip(member.columns, member.kind.store_json, strict=True)
    }


build_row = row_function(
    "build_row", "groups", {name: text for member in MEMBERS for name, text in of_groups(member).items()}
)

get_currencies = itemgetter(*(GROUPS.index(member.columns[1]) for member in MEMBERS if member.kind == MONEY))
get_times = itemgetter(*(GROUPS.index(member.name) for member in MEMBERS if member.kind == TIME))
get_checked = itemgetter(*map(GROUPS.index, ("status", "paid_at", "metadata", "details")))

is_country = re.compile(unanchored(COUNTRY)).fullmatch
is_masked = re.compile(CARD_NUMBER).fullmatch


def parse_canonical(json: bytes) -> StoredRow | None:
    """Return the row of a canonical, valid record; None for any other."""
    try:
        match = match_canonical(json.decode())
    except UnicodeDecodeError:
        return None
    if match is None:
        return None
    groups = match.groups()
    return build_row(groups) if is_valid(groups) else None


def is_valid(groups: Sequence[Any]) -> bool:
    """Return whether the columns are valid beyond their patterns."""
    status, paid_at, metadata, details = get_checked(groups)
    return (
        are_known(get_currencies(groups))
        and (paid_at is not None or status != Status.SUCCEEDED)
        # A member can be repeated only if there are two.
        and ('","' not in metadata or read_unique_texts(metadata) is not None)
        and (details is None or is_harmless(read_unique_texts(details)))
        and are_calendar_times(get_times(groups))
    )


def are_known(currencies: Sequence[str | None]) -> bool:
    for currency in currencies:  # noqa: SIM110  a generator would take longer
        if currency is not None and currency not in CURRENCIES:
            return False
    return True


def are_calendar_times(times: Sequence[str | None]) -> bool:
    try:
        for time in times:
            if time:
                datetime.fromisoformat(time)
    except ValueError:
        return False
    return True


def read_unique_texts(document: str) -> dict[str, str] | None:
    """Return the members of a JSON object of texts; None if a member is repeated."""
    texts = read_texts(document)
    return texts if encode(texts).decode() == document else None


def is_harmless(details: dict[str, str] | None) -> bool:
    """Return whether no member of `details` shows a card number or a security code."""
    return details is not None and all(is_harmless_member(name, text) for name, text in details.items())


def is_harmless_member(name: str, text: str) -> bool:
    if name == "cardNumber":
        return is_masked(text) is not None
    if name == "cardCountryCode":
        return is_country(text) is not None
    return not (exposes_card_number(text) or exposes_card_number(name) or is_sensitive_name(name))
