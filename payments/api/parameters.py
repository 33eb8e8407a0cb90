"""The query string of a list: typed parameters, or the first error. Invalid values are refused, never corrected.

The functions raise InvalidParameter for the first invalid parameter.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from payments.api.errors import InvalidParameter
from payments.api.links import SCHEME
from payments.listing.filters import (
    EVERYTHING,
    FILTERS,
    LIST_FILTERS,
    METADATA,
    PARAMETERS,
    RANGES,
    InvalidSelection,
    Selection,
    parse_selection,
    safe_name,
)
from payments.listing.tokens import FeedPosition, InvalidToken, parse_token
from payments.models import PAYMENT_ID

LIMIT_DEFAULT = 20
LIMIT_MAX = 250

# Requests are parsed before their key is checked, so parsing must be cheap.
PARAMETERS_MAX = 200

LIMIT = re.compile(r"[1-9][0-9]{0,2}")
START = re.compile(PAYMENT_ID)
PAGE_NAMES = frozenset({"limit", "from"})
NAMES = PAGE_NAMES.union(PARAMETERS)

# The plain form of a metadata pair, `metadata=KEY:VALUE`. A text that begins with one of these characters is JSON, or
# an object that the client has printed by mistake.
PLAIN_PAIR = re.compile(r"""([^:{\["][^:]*):(.*)""", re.DOTALL)
PLAIN_PAIR_NAMES = frozenset({"metadata", "metadata[]"})

# A value of a list in the forms of axios and of PHP: `status[]=open`, `status[0]=open`.
LIST_ITEM = re.compile(rf"({'|'.join(LIST_FILTERS)})\[[0-9]*\]")

# What to write instead of a filter's name without brackets, or with others.
ADVICE = {
    **{name: f"Write {name}=VALUE." for name in LIST_FILTERS},
    **{name: f"Write {name}[gte]={FILTERS[f'{name}[gte]'].kind}, or gt, lte, lt." for name in RANGES},
    "metadata": "Write metadata[KEY]=VALUE.",
}

# The value of `from` for the end of the change feed.
NOW = "now"


class ListParameters(NamedTuple):
    """The page that a request asks for. `start` is the ID that the page starts at; None is the first page."""

    limit: int = LIMIT_DEFAULT
    start: str | None = None
    selection: Selection = EVERYTHING


class ChangesParameters(NamedTuple):
    """The page of the change feed that a request asks for.

    `token` is the value of `from`, and `position` its meaning. The token `now` has no position.
    """

    limit: int = LIMIT_DEFAULT
    token: str | None = None
    position: FeedPosition | None = None


def query_string(variables: Mapping[str, Any]) -> str:
    """Return the query string of a request with these variables.

    With WSGI, each character stands for a byte (PEP 3333). Bytes that are not UTF-8 become lone surrogates, which no
    parameter accepts.
    """
    query: str = variables["QUERY_STRING"]
    if query.isascii() or SCHEME not in variables:
        return query
    return query.encode("latin-1").decode(errors="surrogateescape")


def parse_list_parameters(query: str) -> ListParameters:
    """Parse the query string of a list. Whether the payment `from` exists is not checked.

    :raises InvalidParameter: for the first invalid parameter, in the order that docs/api/reference.md describes; its
        `start` is the ID in `from`, if an unknown ID must be reported first
    """
    pairs = split_query(query)
    parameters = parse_pairs(pairs, known=NAMES, has_filters=True)
    limit, start = parse_limit(parameters), parse_start(parameters)
    if parameters.keys() <= PAGE_NAMES:
        return ListParameters(limit, start)
    plain = {bracket_form(name, text)[0]: text for name, text in pairs if name in PLAIN_PAIR_NAMES}
    try:
        return ListParameters(limit, start, parse_selection(parameters, plain_pairs=plain))
    except InvalidSelection as error:
        field = "metadata" if error.field in plain else error.field
        raise InvalidParameter(str(error), field=field, start=start) from None


def parse_page_parameters(query: str) -> ListParameters:
    """Parse `limit` and `from` for a view with other parameters of its own, which links keep as they are."""
    pairs = split_query(query)
    others = [pair for pair in pairs if pair[0] not in PAGE_NAMES]
    parameters = parse_pairs((pair for pair in pairs if pair[0] in PAGE_NAMES), known=PAGE_NAMES)
    kept = f"&{urlencode(others, errors='surrogateescape')}" if others else ""
    return ListParameters(parse_limit(parameters), parse_start(parameters), Selection(query=kept))


def parse_changes_parameters(query: str) -> ChangesParameters:
    """Parse the query string of the change feed. Whether the database knows the position is not checked."""
    parameters = parse_query(query, known=PAGE_NAMES)
    limit = parse_limit(parameters)
    token = parameters.get("from")
    try:
        position = None if token in {None, NOW} else parse_token(parameters["from"])
    except InvalidToken:
        raise invalid_token() from None
    return ChangesParameters(limit, token, position)


def parse_query(query: str, *, known: Collection[str] = ()) -> dict[str, str]:
    return parse_pairs(split_query(query), known=known)


def parse_pairs(
    pairs: Iterable[tuple[str, str]], *, known: Collection[str], has_filters: bool = False
) -> dict[str, str]:
    """Return the parameters by name. Names must be known, except for pairs of metadata among filters.

    Libraries write a list as `status=open&status=pending`, `status[]=open&status[]=pending` or
    `status[0]=open&status[1]=pending`. The result has the form `open,pending`. Pairs of metadata have the form
    `metadata[KEY]`.

    :raises InvalidParameter: for an unknown parameter, or a repeated one that takes no list; ignoring it could hide a
        mistake of the client
    """
    values: dict[str, list[str]] = {}
    for sent, text in pairs:
        name, value = (sent, text) if sent in known else bracket_form(sent, text)
        if name not in known and not (has_filters and METADATA.fullmatch(name)):
            filter_name = sent.partition("[")[0]
            if has_filters and filter_name in ADVICE:
                raise InvalidParameter(ADVICE[filter_name], field=safe_name(sent) or filter_name)
            raise InvalidParameter("Unknown parameter.", field=safe_name(sent))
        if name in values and name not in LIST_FILTERS:
            detail = f"{safe_name(name) or 'metadata'} must occur only once."
            raise InvalidParameter(detail, field=safe_name(sent) or "metadata")
        values.setdefault(name, []).append(value)
    return {name: ",".join(texts) for name, texts in values.items()}


def bracket_form(name: str, text: str) -> tuple[str, str]:
    """Return a parameter in the form of filters: `metadata[a]=1` for `metadata=a:1`, `status` for `status[0]`."""
    if name in PLAIN_PAIR_NAMES:
        pair = PLAIN_PAIR.fullmatch(text)
        return (f"metadata[{pair[1]}]", pair[2]) if pair else (name, text)
    item = LIST_ITEM.fullmatch(name)
    return (item[1], text) if item else (name, text)


def split_query(query: str) -> list[tuple[str, str]]:
    """Return the names and values of a query string. The cost is linear in the length of the text.

    Most query strings have no encoded characters. For those, `str.partition` is faster than `parse_qsl`.
    """
    if query.count("&") >= PARAMETERS_MAX:
        raise InvalidParameter(f"Send at most {PARAMETERS_MAX} parameters.", field=None)
    if "%" in query or "+" in query:
        return parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
    return [part.partition("=")[::2] for part in query.split("&") if part]


def parse_limit(parameters: Mapping[str, str]) -> int:
    text = parameters.get("limit")
    if text is None:
        return LIMIT_DEFAULT
    if not LIMIT.fullmatch(text) or int(text) > LIMIT_MAX:
        raise InvalidParameter(f"limit must be a whole number from 1 to {LIMIT_MAX}.", field="limit")
    return int(text)


def parse_start(parameters: Mapping[str, str]) -> str | None:
    text = parameters.get("from")
    if text is not None and not START.fullmatch(text):
        raise invalid_from()
    return text


def invalid_from() -> InvalidParameter:
    """Return the same error for a malformed ID, an unknown ID, and an ID of another organization or mode."""
    return InvalidParameter("from must be the ID of one of your payments.", field="from")


def invalid_token() -> InvalidParameter:
    """Return the same error for a malformed token, and a token of another organization or mode."""
    return InvalidParameter(f"from must be a token from a link of your changes, or {NOW}.", field="from")
