"""What can be asked of a list: filters, how their texts are read, and what each asks of the payments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from payments.ordering import NEWEST_FIRST, Order

if TYPE_CHECKING:
    from payments.models import PaymentQuerySet

VALUES_MAX = 20

# A date, or a time of it, which is in UTC unless it says otherwise (RFC 3339).
CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
MOMENT = rf"\A[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:T{CLOCK}:[0-5][0-9](?:\.[0-9]{{1,6}})?(?:Z|[+-]{CLOCK})?)?\Z"
AMOUNT = r"\A-?(?:0|[1-9][0-9]{0,12})(?:\.[0-9]{1,2})?\Z"

Values: TypeAlias = tuple[Any, ...]
Narrow: TypeAlias = "Callable[[PaymentQuerySet, Values], PaymentQuerySet]"


@dataclass(frozen=True, eq=False)
class Filter:
    """A way to ask for some payments of a list; of several values any will do."""

    narrow: Narrow
    read: Callable[[str], Values | None]  # None: that is no text for it
    must_be: str
    schema: Mapping[str, Any]
    example: Any
    chooses_index: bool = False  # by its values, which are then a part of the statement


class GivenFilter(NamedTuple):
    """A filter, and the values that were given for it."""

    name: str
    filter: Filter
    values: Values


class Selection(NamedTuple):
    """Which payments of a list are asked for, in which order, and what a link adds to say so."""

    filters: tuple[GivenFilter, ...] = ()
    order: Order = NEWEST_FIRST
    query: str = ""


EVERYTHING = Selection()


def words(narrow: Narrow, *, pattern: str, description: str, example: list[str]) -> Filter:
    """Return a filter by words of a form."""
    must_be = f"{description}, or up to {VALUES_MAX} of them, separated by commas"
    schema = listed({"type": "string", "pattern": pattern})
    matches = re.compile(pattern).match
    return Filter(narrow, lambda text: split(text, matches), must_be, schema, example)


def known_words(
    narrow: Narrow, known: Collection[str], *, must_be: str = "", example: list[str], chooses_index: bool = False
) -> Filter:
    """Return a filter by words of which there are no others."""
    must_be = must_be or f"{', '.join(known)}, or some of them, separated by commas"
    schema = listed({"type": "string", "enum": list(known)})
    return Filter(narrow, lambda text: split(text, known.__contains__), must_be, schema, example, chooses_index)


def split(text: str, is_right: Callable[[str], object]) -> Values | None:
    """Return the words of a list, each once, in the order of their letters; None where one of them is not right."""
    found = text.split(",")
    return tuple(sorted(set(found))) if len(found) <= VALUES_MAX and all(map(is_right, found)) else None


def listed(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1, "maxItems": VALUES_MAX}


def moment(narrow: Narrow) -> Filter:
    """Return a filter by a moment."""
    must_be = "a date, or a time such as 2018-03-20T13:28:37.123, in UTC or with Z or an offset (whose + is %2B)"
    return Filter(narrow, read_moment, must_be, {"type": "string", "pattern": MOMENT}, "2026-01-01")


def read_moment(text: str) -> Values | None:
    """Read a moment: without an offset it is in UTC, and a date is its first instant."""
    if not re.match(MOMENT, text):
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC),)
    except (ValueError, OverflowError):  # the 30th of February; an offset that leads out of the calendar
        return None


def amount(narrow: Narrow) -> Filter:
    """Return a filter by a decimal number."""
    must_be = "a decimal with at most 13 digits before the point and 2 after it"
    return Filter(narrow, read_amount, must_be, {"type": "string", "pattern": AMOUNT}, "100.00")


def read_amount(text: str) -> Values | None:
    return (Decimal(text),) if re.match(AMOUNT, text) else None


def document(narrow: Narrow, *, must_be: str, schema: Mapping[str, Any], example: Mapping[str, str]) -> Filter:
    """Return a filter by a JSON object."""
    return Filter(narrow, lambda text: (text,), must_be, schema, example)
