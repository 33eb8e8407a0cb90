"""The list's parameters as OpenAPI describes them."""

from typing import Any

from payments.api.parameters import BOUNDS, FILTERS, LIMIT_DEFAULT, LIMIT_MAX, ORDERS, RANGES
from payments.filters import Filter
from payments.models import PAYMENT_ID

DEEP_OBJECT = {"style": "deepObject", "explode": True}  # name[key]=value


def parameter_schemas() -> list[dict[str, Any]]:
    """Return them in the order in which links have them: a range, and the pairs of metadata, as one object each."""
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
            "description": "The payment from whose place on the page begins, itself included; without it, the first.",
            "schema": {"type": "string", "pattern": PAYMENT_ID},
        },
        {
            "name": "sort",
            "in": "query",
            "description": "The newest payments first, or the oldest.",
            "schema": {"type": "string", "enum": list(ORDERS), "default": "desc"},
        },
        *(listed_schema(name, each) for name, each in FILTERS.items() if each.schema["type"] == "array"),
        *(range_schema(field) for field in RANGES),
        {
            "name": "metadata",
            "in": "query",
            "description": f"What metadata must hold, metadata[KEY]=VALUE: {FILTERS['metadata'].must_be}.",
            **DEEP_OBJECT,
            "schema": FILTERS["metadata"].schema,
            "example": FILTERS["metadata"].example,
        },
    ]


def listed_schema(name: str, each: Filter) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "description": f"Any of some words. Must be {each.must_be}.",
        "style": "form",
        "explode": False,
        "schema": each.schema,
        "example": each.example,
    }


def range_schema(field: str) -> dict[str, Any]:
    bounds = {bound: FILTERS[f"{field}[{bound}]"] for bound in BOUNDS}
    first = bounds[BOUNDS[0]]
    needs = " Needs currency." if field == "amount" else ""
    return {
        "name": field,
        "in": "query",
        "description": f"A range, {field}[{BOUNDS[0]}]={first.example} say. Each bound must be {first.must_be}.{needs}",
        **DEEP_OBJECT,
        "schema": {
            "type": "object",
            "properties": {bound: each.schema for bound, each in bounds.items()},
            "additionalProperties": False,
        },
        "example": {BOUNDS[0]: first.example},
    }
