"""What DRF's pages show beside an answer: a form for the list's parameters."""

from typing import Any

from django.template.loader import render_to_string
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request
from rest_framework.views import APIView

from payments.parameters import BOUNDS, FILTERS, ORDERS, RANGES


class FilterForm(BaseFilterBackend):
    """A form that asks for the same list with other filters. The paginator applies them."""

    def filter_queryset(self, request: Request, queryset: Any, view: APIView) -> Any:
        return queryset

    def to_html(self, request: Request, queryset: Any, view: APIView) -> str:
        given = request.query_params.dict()
        words = [name for name, each in FILTERS.items() if each.schema["type"] == "array"]
        context = {
            "limit": given.get("limit", ""),
            "orders": [(order, order == given.get("sort")) for order in ORDERS],
            "words": [
                (name, given.get(name, ""), ",".join(FILTERS[name].example), FILTERS[name].must_be) for name in words
            ],
            "ranges": [(field, [range_field(field, bound, given) for bound in BOUNDS]) for field in RANGES],
            "pairs": [(name, value) for name, value in given.items() if name.startswith("metadata[")],
        }
        return render_to_string("payments/filters.html", context, request=request._request)  # noqa: SLF001


def range_field(field: str, bound: str, given: dict[str, str]) -> tuple[str, str, str, Any]:
    name = f"{field}[{bound}]"
    return name, bound, given.get(name, ""), FILTERS[name].example
