"""A form for the list's parameters: each of them, what was given for it, and what is wrong with that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from payments.api.parameters import BOUNDS, FILTERS, LIMIT_DEFAULT, LIMIT_MAX, ORDERS, RANGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from payments.api.problems import Problem

WORDS = [name for name, each in FILTERS.items() if each.schema["type"] == "array"]


class Field(NamedTuple):
    """A parameter, as somebody types it in."""

    name: str
    value: str
    error: str
    example: str = ""
    must_be: str = ""


def form(given: Mapping[str, str], problem: Problem | None) -> dict[str, Any]:
    """Return what the form's template shows, of the parameters that were given and of the refusal they met."""
    errors = {problem.field: problem.detail} if problem and problem.field is not UNSET else {}

    def field(name: str, **shown: str) -> Field:
        return Field(name, given.get(name, ""), errors.get(name, ""), **shown)

    return {
        "fields": [
            field("limit", example=str(LIMIT_DEFAULT), must_be=f"a whole number from 1 to {LIMIT_MAX}"),
            *(field(name, example=",".join(FILTERS[name].example), must_be=FILTERS[name].must_be) for name in WORDS),
        ],
        "orders": ORDERS,
        "order": field("sort"),
        "ranges": [
            (name, [(bound, field(f"{name}[{bound}]", example=example(name, bound))) for bound in BOUNDS])
            for name in RANGES
        ],
        "pairs": [field(name) for name in given if name.startswith("metadata[")],
        "is_open": bool(errors) or not given.keys() <= {"limit", "from"},
    }


def example(name: str, bound: str) -> str:
    return str(FILTERS[f"{name}[{bound}]"].example)
