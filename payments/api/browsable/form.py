"""The form of the list's parameters: each field with its value and its error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from payments.api.parameters import LIMIT_DEFAULT, LIMIT_MAX
from payments.filters import BOUNDS, FILTERS, ORDERS, RANGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from payments.api.problems import Problem

WORD_FILTERS = [name for name, filter_ in FILTERS.items() if filter_.schema["type"] == "array"]


class Field(NamedTuple):
    """A field of the form: a parameter, its value in the request, and the error of that value."""

    name: str
    value: str
    error: str
    example: str = ""
    rule: str = ""


def form_context(parameters: Mapping[str, str], problem: Problem | None) -> dict[str, Any]:
    """Return the template context for the parameters of a request and its problem, if it has one."""
    errors = {problem.field: problem.detail} if problem and problem.field is not UNSET else {}

    def field(name: str, **texts: str) -> Field:
        return Field(name, parameters.get(name, ""), errors.get(name, ""), **texts)

    return {
        "fields": [
            field("limit", example=str(LIMIT_DEFAULT), rule=f"a whole number from 1 to {LIMIT_MAX}"),
            *(field(name, example=",".join(FILTERS[name].example), rule=FILTERS[name].rule) for name in WORD_FILTERS),
        ],
        "orders": ORDERS,
        "order": field("sort"),
        "ranges": [
            (name, [(bound, field(f"{name}[{bound}]", example=example(name, bound))) for bound in BOUNDS])
            for name in RANGES
        ],
        "pairs": [field(name) for name in parameters if name.startswith("metadata[")],
        "is_open": bool(errors) or not parameters.keys() <= {"limit", "from"},
    }


def example(name: str, bound: str) -> str:
    return str(FILTERS[f"{name}[{bound}]"].example)
