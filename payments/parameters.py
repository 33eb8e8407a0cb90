"""The query string: typed, bounded parameters, or the first thing that is wrong with them. Nothing is clamped."""

import re
from collections.abc import Collection
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from payments.exceptions import InvalidParameter
from payments.models import PAYMENT_ID

LIMIT_DEFAULT = 20
LIMIT_MAX = 250

LIMIT = re.compile(r"[1-9][0-9]{0,2}")
START = re.compile(PAYMENT_ID)
SHORT_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.\[\]-]{0,31}")


class ListParameters(NamedTuple):
    """Which page of the list: its size, and the id of its first payment (None: the newest)."""

    limit: int = LIMIT_DEFAULT
    start: str | None = None


def list_parameters(query: str) -> ListParameters:
    """Read the list's parameters from a query string.

    :raises InvalidParameter: naming the first at fault, in the order of the contract (section 5)
    """
    given = single_values(query, known=("limit", "from"))
    return ListParameters(
        limit=limit(given["limit"]) if "limit" in given else LIMIT_DEFAULT,
        start=start(given["from"]) if "from" in given else None,
    )


def single_values(query: str, *, known: Collection[str]) -> dict[str, str]:
    """Return the parameters by name; refuse what would otherwise be overlooked.

    A mistyped parameter must not be answered as if it were not there. Only a short, plain name is repeated to the
    client.
    """
    found: dict[str, str] = {}
    for name, value in pairs(query):
        if name not in known:
            named = name if SHORT_NAME.fullmatch(name) else None
            raise InvalidParameter("There is no parameter of this name.", field=named)
        if name in found:
            raise InvalidParameter(f"{name} must be given once.", field=name)
        found[name] = value
    return found


def pairs(query: str) -> list[tuple[str, str]]:
    """Take a query string apart: most are plain, which the standard library's careful way is slow for."""
    if "%" in query or "+" in query:
        return parse_qsl(query, keep_blank_values=True)
    parts = (part.partition("=") for part in query.split("&") if part)
    return [(name, value) for name, _, value in parts]


def limit(text: str) -> int:
    if not LIMIT.fullmatch(text) or int(text) > LIMIT_MAX:
        raise InvalidParameter(f"limit must be a whole number from 1 to {LIMIT_MAX}.", field="limit")
    return int(text)


def start(text: str) -> str:
    if not START.fullmatch(text):
        raise unknown_start()
    return text


def unknown_start() -> InvalidParameter:
    """Return the one answer for a malformed id, an unknown one, and one that belongs to somebody else."""
    return InvalidParameter("from must be the id of one of your payments.", field="from")


def parameter_schemas() -> list[dict[str, Any]]:
    """Return the list's parameters as OpenAPI describes them."""
    return [
        {
            "name": "limit",
            "in": "query",
            "description": "How many payments a page holds.",
            "schema": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
        },
        {
            "name": "from",
            "in": "query",
            "description": "The payment with which the page begins; without it, the newest.",
            "schema": {"type": "string", "pattern": PAYMENT_ID},
        },
    ]
