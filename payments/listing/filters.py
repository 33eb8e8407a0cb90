"""The filters of the list, and the selection of a request."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from payments.listing.filter_types import Filter, Values, amount_filter, any_word, single, time_filter, word_filter
from payments.listing.terms import HasAllPairs, TermCondition
from payments.models import (
    CUSTOMER_ID,
    METHOD,
    Access,
    PaymentQuerySet,
    SequenceType,
    Status,
    uses_in_flight_index,
    uses_status_index,
)
from payments.models.choices import CURRENCIES
from payments.models.days import end_of_day, start_of_day
from payments.models.ordering import NEWEST_FIRST, OLDEST_FIRST, Order
from payments.record import encode, parse_instant, record_time

ORDERS: Mapping[str, Order] = {"desc": NEWEST_FIRST, "asc": OLDEST_FIRST}

# Each metadata pair is a parameter. The filter takes all pairs as one JSON object.
METADATA = re.compile(r"metadata\[(.+)\]", re.DOTALL)
METADATA_PAIRS_MAX = 5
METADATA_CHARACTERS_MAX = 500
METADATA_PAIR = r'\A[^:{\["][^:]*:([^:]|:)+\Z'  # the form that every generated client can send
METADATA_TEXT = re.compile(rf"[^\x00\ud800-\udfff]{{1,{METADATA_CHARACTERS_MAX}}}")

# How the bounds of a range select payments, and the type of their filters.
RANGES: Mapping[str, tuple[Callable[..., PaymentQuerySet], Callable[..., Filter]]] = {
    "createdAt": (PaymentQuerySet.created, time_filter),
    "paidAt": (partial(PaymentQuerySet.matching, column="paid_at"), time_filter),
    "amount": (partial(PaymentQuerySet.matching, column="amount"), amount_filter),
}
LOWER, UPPER = ("gte", "gt"), ("lte", "lt")
BOUNDS = {"gte": "at or above", "gt": "above", "lte": "at or below", "lt": "below"}


def status_terms(access: Access, statuses: Values) -> TermCondition | None:
    """Return the condition for statuses that have no index of their own in the order of the list."""
    if uses_status_index(statuses) or uses_in_flight_index(statuses):
        return None
    return any_word("status")(access, statuses)


def range_effect(name: str, bound: str) -> str:
    needs = "with currency, " if name == "amount" else ""
    return f"{needs}only payments whose {name} is {bound} this value"


# In the order of their parameters in a link.
FILTERS: Mapping[str, Filter] = {
    "status": word_filter(
        PaymentQuerySet.with_status,
        known=Status.values,
        example=["open", "pending"],
        values_are_literals=True,
        terms=status_terms,
    ),
    "method": word_filter(
        partial(PaymentQuerySet.matching, column="method", lookup="in"),
        pattern=METHOD,
        description="a word of 1 to 32 letters, digits, underscores or hyphens",
        example=["creditcard"],
        terms=any_word("method"),
    ),
    "customerId": word_filter(
        PaymentQuerySet.of_customer,
        pattern=CUSTOMER_ID,
        description="a customer ID, ct_ and 1 to 61 letters, digits, underscores or hyphens",
        example=["ct_7"],
    ),
    "sequenceType": word_filter(
        partial(PaymentQuerySet.matching, column="sequence_type", lookup="in"),
        known=SequenceType.values,
        example=["recurring"],
        terms=any_word("sequence"),
    ),
    "currency": word_filter(
        partial(PaymentQuerySet.matching, column="amount_currency", lookup="in"),
        pattern=r"\A[A-Z]{3}\Z",  # a list of all codes would make clients of the API's description large
        description="an ISO 4217 currency code",
        known=CURRENCIES,
        example=["EUR"],
        terms=any_word("currency"),
    ),
    **{
        f"{name}[{bound}]": filter_type(select, range_effect(name, words), bound=bound)
        for name, (select, filter_type) in RANGES.items()
        for bound, words in BOUNDS.items()
    },
    "metadata": Filter(
        single(partial(PaymentQuerySet.matching, column="metadata", lookup="contains_members")),
        parse=lambda document: (document,),
        effect="only payments whose metadata contains these pairs, metadata[KEY]=VALUE",
        kind="PAIRS",
        rule=f"at most {METADATA_PAIRS_MAX} pairs, key and value of 1 to {METADATA_CHARACTERS_MAX} characters each",
        schema={
            "type": "array",
            "items": {"type": "string", "pattern": METADATA_PAIR, "maxLength": 2 * METADATA_CHARACTERS_MAX + 1},
            "minItems": 1,
            "maxItems": METADATA_PAIRS_MAX,
        },
        example=["order:84820"],
        terms=lambda access, values: HasAllPairs(*access, *values),
    ),
}

# The filters that take several values: separated by commas, or in repeated parameters.
LIST_FILTERS = frozenset(name for name, filter_ in FILTERS.items() if filter_.takes_list)

# The filters that are one parameter each.
SINGLE_FILTERS = tuple(name for name in FILTERS if name != "metadata")

# The parameters of a selection, without the metadata pairs.
PARAMETERS = ("sort", *SINGLE_FILTERS)

# A parameter's name that an error message may repeat.
SAFE_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.\[\]-]{0,31}")


class InvalidSelection(ValueError):
    """A parameter of the selection is invalid. `field` is its name; a response may repeat it."""

    def __init__(self, name: str, rule: str) -> None:
        self.field = safe_name(name) or "metadata"  # the names of all other parameters are known and safe
        super().__init__(f"{self.field} must be {rule}.")


class AppliedFilter(NamedTuple):
    """A filter and its values."""

    name: str
    filter: Filter
    values: Values


class Selection(NamedTuple):
    """The filters and the order of a list."""

    filters: tuple[AppliedFilter, ...] = ()
    order: Order = NEWEST_FIRST
    query: str = ""  # the selection in a link's query string: `&sort=asc&status=open`


EVERYTHING = Selection()


def parse_selection(parameters: Mapping[str, str], *, plain_pairs: Mapping[str, str] = {}) -> Selection:
    """Return the selection in the parameters. Other parameters are ignored.

    `plain_pairs` has the metadata pairs that links write in the plain form: `{"metadata[order]": "order:1"}`.

    :raises InvalidSelection: for the first invalid parameter
    """
    names = [*(name for name in PARAMETERS if name in parameters), *sorted(filter(METADATA.fullmatch, parameters))]
    if not names:
        return EVERYTHING
    if (direction := parameters.get("sort", "desc")) not in ORDERS:
        raise InvalidSelection("sort", " or ".join(ORDERS))
    filters = tuple(parse_filters(parameters))
    refuse_reversed_ranges(parameters)
    for name in names:
        if name.startswith("amount") and "currency" not in names:
            raise InvalidSelection(name, "used together with currency")
    pairs = [("metadata", plain_pairs[name]) if name in plain_pairs else (name, parameters[name]) for name in names]
    return Selection(filters, ORDERS[direction], f"&{urlencode(pairs, quote_via=quote, safe='')}")


def parse_filters(parameters: Mapping[str, str]) -> Iterator[AppliedFilter]:
    for name, filter_ in FILTERS.items():
        text = metadata_document(parameters) if name == "metadata" else parameters.get(name)
        if text is not None:
            values = filter_.parse(text)
            if values is None:
                raise InvalidSelection(name, filter_.rule)
            yield AppliedFilter(name, filter_, values)


def metadata_document(parameters: Mapping[str, str]) -> str | None:
    """Return the metadata pairs as one JSON object; None if there are no pairs.

    :raises InvalidSelection: for too many pairs, or a key or value that is too long or not a text
    """
    names = {match[1]: match[0] for match in map(METADATA.fullmatch, parameters) if match}
    for key, name in names.items():
        is_valid = METADATA_TEXT.fullmatch(key) and METADATA_TEXT.fullmatch(parameters[name])
        if len(names) > METADATA_PAIRS_MAX or not is_valid:
            raise InvalidSelection(name, FILTERS["metadata"].rule)
    return encode({key: parameters[name] for key, name in names.items()}).decode() if names else None


def refuse_reversed_ranges(parameters: Mapping[str, str]) -> None:
    """Refuse an upper bound below a lower one. A range of equal bounds may be empty, which is no error."""
    for field, lower, upper in product(RANGES, LOWER, UPPER):
        exact: Callable[[str], Any] = Decimal if field == "amount" else parse_instant
        low, high = parameters.get(f"{field}[{lower}]"), parameters.get(f"{field}[{upper}]")
        if low is not None and high is not None and exact(high) < exact(low):
            side = "above" if field == "amount" else "after"
            raise InvalidSelection(f"{field}[{upper}]", f"at or {side} {field}[{lower}]")


def day_parameters(name: str, first: date | None, last: date | None, *, zone: ZoneInfo) -> dict[str, str]:
    """Return the bounds of days of a time zone, as parameters with times in UTC. A bound that is None is left out."""
    bounds = {
        f"{name}[gte]": start_of_day(first, zone) if first else None,
        f"{name}[lt]": end_of_day(last, zone) if last else None,
    }
    return {parameter: record_time(bound) for parameter, bound in bounds.items() if bound}


def safe_name(name: str) -> str | None:
    """Return a parameter's name if a response may repeat it; None for a long or unusual one."""
    return name if SAFE_NAME.fullmatch(name) else None
