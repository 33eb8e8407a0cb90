"""The types of filters: how the text of a filter is parsed, and how its values select payments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

from payments.listing.terms import HasAnyWord, TermCondition
from payments.models import Access, PaymentQuerySet
from payments.models.expressions import Condition
from payments.record import DATE, instant_pattern, parse_instant

VALUES_MAX = 20

# A date, or an instant, which may be a leap second.
TIME = rf"\A({DATE}|{instant_pattern(second='([0-5][0-9]|60)')})\Z"
MILLISECOND, LAST_MOMENT = timedelta(milliseconds=1), datetime.max.replace(tzinfo=UTC)
AMOUNT = r"\A-?(0|[1-9][0-9]{0,12})(\.[0-9]{1,2})?\Z"

# The effect and the kind of a filter by words.
ANY_OF, WORDS = "only payments with one of these values", "WORDS"

Values: TypeAlias = tuple[Any, ...]
Select: TypeAlias = Callable[[PaymentQuerySet, Values], PaymentQuerySet]
Terms: TypeAlias = Callable[[Access, Values], TermCondition | None]


@dataclass(frozen=True, eq=False)
class Filter:
    """A filter of the list. Its values may be placeholders of a compiled statement.

    The API's form and description and the options of commands show `effect`, `rule`, `kind` and `example`.
    """

    select: Select
    parse: Callable[[str], Values | None]  # None: the text is invalid
    effect: str  # which payments it selects
    kind: str  # the kind of its value
    rule: str  # what its value must be
    schema: Mapping[str, Any]
    example: Any
    values_are_literals: bool = False  # they decide which index is best, so they are part of the SQL
    terms: Terms | None = None  # the condition by which PostgreSQL finds the payments of one access in an index
    has_own_index: bool = False  # PostgreSQL finds the payments by it: to read the list in its order would take longer

    @property
    def takes_list(self) -> bool:
        return self.kind == WORDS

    def apply(self, payments: PaymentQuerySet, values: Values, access: Access | None) -> PaymentQuerySet:
        """Return the payments that match. `access` is theirs; without it, no index of terms is used."""
        payments = self.select(payments, values)
        condition = self.terms(access, values) if self.terms and access else None
        return payments.filter(Condition(condition)) if condition else payments


def any_word(name: str) -> Terms:
    """Return the condition of a filter by words; `name` is their name in a term."""
    return lambda access, words: HasAnyWord(*access, name, words)


def word_filter(
    select: Callable[[PaymentQuerySet, Collection[Any]], PaymentQuerySet],
    *,
    known: Collection[str] = (),
    pattern: str = "",
    description: str = "",
    **options: Any,
) -> Filter:
    """Return a filter by words that are known, or that match a pattern. Any of its words may match.

    With a pattern and its description, a long list of known words is not shown. `options` are other attributes.
    """
    is_valid = known.__contains__ if known else re.compile(pattern).match
    words, item = (f"up to {VALUES_MAX}", {"pattern": pattern}) if pattern else ("some", {"enum": list(known)})
    rule = f"{description or ', '.join(known)}, or {words} of them, separated by commas"
    schema = {"type": "array", "items": {"type": "string", **item}, "minItems": 1, "maxItems": VALUES_MAX}
    return Filter(select, partial(parse_words, is_valid=is_valid), ANY_OF, WORDS, rule, schema, **options)


def parse_words(text: str, is_valid: Callable[[str], object]) -> Values | None:
    """Return the words of a comma-separated list without duplicates, sorted; None if one of them is invalid."""
    words = text.split(",")
    return tuple(sorted(set(words))) if len(words) <= VALUES_MAX and all(map(is_valid, words)) else None


def single(select: Callable[[PaymentQuerySet, Any], PaymentQuerySet]) -> Select:
    """Return the function for a filter with one value."""
    return lambda payments, values: select(payments, *values)


def time_filter(select: Callable[..., PaymentQuerySet], effect: str, *, bound: str) -> Filter:
    rule = "a date, or a time such as 2018-03-20T13:28:37.123, in UTC or with Z or an offset (whose + is %2B)"
    schema = {"type": "string", "pattern": TIME}
    parse = partial(parse_time, rounds_up=bound in {"gte", "lt"})
    return Filter(single(partial(select, lookup=bound)), parse, effect, "TIME", rule, schema, "2026-01-01")


def parse_time(text: str, *, rounds_up: bool) -> Values | None:
    """Parse a time, rounded up or down to a millisecond. A date is its first instant.

    Stored times are whole milliseconds, so the rounded bound selects the same payments: `gte` and `lt` round up.
    """
    if not re.match(TIME, text):
        return None
    try:
        moment, digits = parse_instant(text)
    except (ValueError, OverflowError):  # 30 February, or an offset that moves the time out of the years 1 to 9999
        return None
    below = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    if not rounds_up or (below == moment and not digits):
        return (below,)
    return (min(below, LAST_MOMENT - MILLISECOND) + MILLISECOND,)


def amount_filter(select: Callable[..., PaymentQuerySet], effect: str, *, bound: str) -> Filter:
    rule = "a decimal with at most 13 digits before the point and 2 after it"
    schema = {"type": "string", "pattern": AMOUNT}

    def parse(text: str) -> Values | None:
        return (Decimal(text),) if re.match(AMOUNT, text) else None

    return Filter(single(partial(select, lookup=bound)), parse, effect, "AMOUNT", rule, schema, "100.00")
