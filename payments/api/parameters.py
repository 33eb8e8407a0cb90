"""The query string: typed, bounded parameters, or the first thing that is wrong with them. Nothing is clamped."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

from payments import filters
from payments.api.errors import InvalidParameter
from payments.currencies import CURRENCIES
from payments.filters import EVERYTHING, VALUES_MAX, Filter, GivenFilter, Selection
from payments.models import CUSTOMER_ID, METHOD, PAYMENT_ID, PaymentQuerySet, SequenceType, Status
from payments.ordering import NEWEST_FIRST, OLDEST_FIRST, Order
from payments.record import encode

LIMIT_DEFAULT = 20
LIMIT_MAX = 250

LIMIT = re.compile(r"[1-9][0-9]{0,2}")
START = re.compile(PAYMENT_ID)
SHORT_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.\[\]-]{0,31}")

ORDERS: Mapping[str, Order] = {"desc": NEWEST_FIRST, "asc": OLDEST_FIRST}

# Each pair of the merchant's own is a parameter; the filter takes all of them as one document.
PAIR = re.compile(r"metadata\[(.+)\]", re.DOTALL)
PAIRS_MAX = 5
PAIR_CHARACTERS_MAX = 500
PAIR_TEXT = re.compile(rf"[^\x00\ud800-\udfff]{{1,{PAIR_CHARACTERS_MAX}}}")

RANGES = {
    "createdAt": ("created_at", filters.moment),
    "paidAt": ("paid_at", filters.moment),
    "amount": ("amount", filters.amount),
}
LOWER, UPPER = ("gte", "gt"), ("lte", "lt")
BOUNDS = (*LOWER, *UPPER)
CLOSED = ("gte", "lte")  # what begins and ends with the same holds that

# What a list can be narrowed by, in the order in which a link says so.
FILTERS: Mapping[str, Filter] = {
    "status": filters.known_words(
        PaymentQuerySet.of_status, Status.values, example=["open", "pending"], chooses_index=True
    ),
    "method": filters.words(
        PaymentQuerySet.of_method,
        pattern=METHOD,
        description="a word of 1 to 32 lower-case letters, digits or underscores",
        example=["creditcard"],
    ),
    "customerId": filters.words(
        PaymentQuerySet.of_customer,
        pattern=CUSTOMER_ID,
        description="a customer's id, ct_ and 1 to 61 letters or digits",
        example=["ct_7"],
    ),
    "sequenceType": filters.known_words(PaymentQuerySet.of_sequence_type, SequenceType.values, example=["recurring"]),
    "currency": filters.known_words(
        PaymentQuerySet.in_currency,
        CURRENCIES,
        must_be=f"an ISO 4217 currency code, or up to {VALUES_MAX} of them, separated by commas",
        example=["EUR"],
    ),
    **{
        f"{name}[{bound}]": kind(partial(PaymentQuerySet.within, column=column, bound=bound))
        for name, (column, kind) in RANGES.items()
        for bound in BOUNDS
    },
    "metadata": filters.document(
        PaymentQuerySet.with_metadata,
        must_be=f"at most {PAIRS_MAX} pairs, key and value of 1 to {PAIR_CHARACTERS_MAX} characters each",
        schema={
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": PAIR_CHARACTERS_MAX},
            "additionalProperties": {"type": "string", "minLength": 1, "maxLength": PAIR_CHARACTERS_MAX},
            "maxProperties": PAIRS_MAX,
        },
        example={"order": "84820"},
    ),
}
PAGE = frozenset({"limit", "from"})
SELECTION = ("sort", *(name for name in FILTERS if name != "metadata"))
NAMES = PAGE.union(SELECTION)


class ListParameters(NamedTuple):
    """Which page of which list: its size, the payment with which it begins (None: the first), and the selection."""

    limit: int = LIMIT_DEFAULT
    start: str | None = None
    selection: Selection = EVERYTHING


def list_parameters(query: str, *, is_known: Callable[[str], bool]) -> ListParameters:
    """Read the list's parameters from a query string.

    Whether there is a payment of the id that `from` names, the page tells. Where something that comes after `from` is
    at fault there will be no page, and `is_known` is asked.

    :raises InvalidParameter: naming the first at fault, in the order of the contract (section 5)
    """
    given = single_values(query, known=NAMES, pairs_of=PAIR)
    page_limit = limit(given["limit"]) if "limit" in given else LIMIT_DEFAULT
    page_start = start(given["from"]) if "from" in given else None
    try:
        return ListParameters(page_limit, page_start, selection(given))
    except InvalidParameter:
        if page_start is not None and not is_known(page_start):
            raise unknown_start() from None
        raise


def single_values(
    query: str, *, known: Collection[str] = (), pairs_of: re.Pattern[str] | None = None
) -> dict[str, str]:
    """Return the parameters by name; refuse what would otherwise be overlooked.

    A mistyped parameter must not be answered as if it were not there.
    """
    found: dict[str, str] = {}
    for name, value in pairs(query):
        if name not in known and not (pairs_of and pairs_of.fullmatch(name)):
            raise InvalidParameter("There is no parameter of this name.", field=repeatable(name))
        if name in found:
            raise at_fault(name, "given once")
        found[name] = value
    return found


def pairs(query: str) -> list[tuple[str, str]]:
    """Take a query string apart: most are plain, which the standard library's careful way is slow for.

    What is no UTF-8 comes as lone surrogates, which no parameter takes.
    """
    if "%" in query or "+" in query or not query.isascii():
        text = query.encode("latin-1").decode(errors="surrogateescape")  # WSGI has bytes in it (PEP 3333)
        return parse_qsl(text, keep_blank_values=True, errors="surrogateescape")
    parts = (part.partition("=") for part in query.split("&") if part)
    return [(name, value) for name, _, value in parts]


def repeatable(name: str) -> str | None:
    """Return a parameter's name as an answer may repeat it: a short and plain one, no other."""
    return name if SHORT_NAME.fullmatch(name) else None


def at_fault(name: str, must_be: str) -> InvalidParameter:
    shown = repeatable(name) or "metadata"  # all others are known, and plain
    return InvalidParameter(f"{shown} must be {must_be}.", field=shown)


def limit(text: str) -> int:
    if not LIMIT.fullmatch(text) or int(text) > LIMIT_MAX:
        raise at_fault("limit", f"a whole number from 1 to {LIMIT_MAX}")
    return int(text)


def start(text: str) -> str:
    if not START.fullmatch(text):
        raise unknown_start()
    return text


def unknown_start() -> InvalidParameter:
    """Return the one answer for a malformed id, an unknown one, and one that belongs to somebody else."""
    return at_fault("from", "the id of one of your payments")


def selection(given: Mapping[str, str]) -> Selection:
    """Return what is asked for beside the page.

    :raises InvalidParameter: naming the first at fault
    """
    if given.keys() <= PAGE:
        return EVERYTHING
    order = sort(given["sort"]) if "sort" in given else NEWEST_FIRST
    names = [*(name for name in SELECTION if name in given), *sorted(filter(PAIR.fullmatch, given))]
    found = tuple(given_filters(given))
    refuse_contradictions({each.name: each.values[0] for each in found})
    return Selection(found, order, "".join(f"&{encoded(name)}={encoded(given[name])}" for name in names))


def sort(text: str) -> Order:
    if text not in ORDERS:
        raise at_fault("sort", " or ".join(ORDERS))
    return ORDERS[text]


def given_filters(given: Mapping[str, str]) -> Iterator[GivenFilter]:
    for name, each in FILTERS.items():
        text = metadata(given) if name == "metadata" else given.get(name)
        if text is not None:
            values = each.read(text)
            if values is None:
                raise at_fault(name, each.must_be)
            yield GivenFilter(name, each, values)


def metadata(given: Mapping[str, str]) -> str | None:
    """Return the pairs that metadata must hold, as one JSON object; None where there are none.

    :raises InvalidParameter: where there are too many, or one of them is too long or no text
    """
    names = {match[1]: match[0] for match in map(PAIR.fullmatch, given) if match}
    for key, name in names.items():
        if len(names) > PAIRS_MAX or not PAIR_TEXT.fullmatch(key) or not PAIR_TEXT.fullmatch(given[name]):
            raise at_fault(name, FILTERS["metadata"].must_be)
    return encode({key: given[name] for key, name in names.items()}).decode() if names else None


def refuse_contradictions(values: Mapping[str, Any]) -> None:
    """Refuse a range that nothing can be in, and amounts of no currency.

    :raises InvalidParameter: naming what could be mended
    """
    for field, lower, upper in product(RANGES, LOWER, UPPER):
        low, high = (values.get(f"{field}[{bound}]") for bound in (lower, upper))
        is_empty = low is not None and high is not None and (low > high or (low == high and (lower, upper) != CLOSED))
        if is_empty:
            raise at_fault(f"{field}[{upper}]", f"greater than {field}[{lower}]")
    for name in values:
        if name.startswith("amount") and "currency" not in values:
            raise at_fault(name, "given together with currency")


def encoded(text: str) -> str:
    return quote(text, safe="")
