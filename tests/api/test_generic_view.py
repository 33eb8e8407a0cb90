"""`KeysetPagination` and `PaymentSerializer` in a view of another project: without a key, and over instances."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from rest_framework.filters import BaseFilterBackend
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from payments.api.pagination import KeysetPagination, SelectionFilter
from payments.api.serializers import PaymentSerializer
from payments.models import Organization, Payment
from tests.support.api import Api
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.lists import noon_plus


class ShopPayments(ListAPIView[Payment]):
    """The payments of one shop, for everyone."""

    queryset = Payment.objects.filter(organization_id=1, mode="live")
    serializer_class = PaymentSerializer
    pagination_class = KeysetPagination
    filter_backends = [SelectionFilter]
    authentication_classes = []
    permission_classes = []


class PaidPayments(ShopPayments):
    """A view whose own conditions also decide which payment a page can start at."""

    def get_queryset(self) -> QuerySet[Payment]:
        return super().get_queryset().filter(status="succeeded")


def fetch(view: type[ShopPayments], query: str = "") -> tuple[int, Any]:
    """Return the status and the document of a page, at the path of the API's own list."""
    request = APIRequestFactory().get(f"/v2/payments?{query}", HTTP_ACCEPT="application/json")
    response: Any = view.as_view()(request)
    return response.status_code, json.loads(response.render().content)


@pytest.fixture
def shop(organization: Organization) -> None:
    """Payments of which four each share a time, of several statuses, with all optional fields and without."""
    for number in range(24):
        optional = {
            "amount_net": Decimal("9.50"),
            "amount_net_currency": "EUR",
            "customer_id": "ct_7",
            "expires_at": noon_plus(9),
            "details": '{"a": 1.5}',
        }
        PaymentFactory.create(
            id=f"pt_{number:02}_",
            organization=organization,
            created_at=noon_plus(number // 4 * 1000),
            status="open" if number % 3 else "succeeded",
            metadata='{"order": "é"}',
            **(optional if number % 2 else {}),
        )
    PaymentFactory.create(id="pt_test", organization=organization, test=True)
    PaymentFactory.create(id="pt_other", organization=OrganizationFactory.create(id=2))


def walk(view: type[ShopPayments], query: str, relation: str) -> Iterator[tuple[str, Any]]:
    """Yield the query string and the document of each page."""
    while True:
        status, page = fetch(view, query)
        assert status == 200
        yield query, page
        if relation not in page["_links"]:
            return
        query = page["_links"][relation]["href"].partition("?")[2]


@pytest.mark.parametrize(
    "query",
    ["", "limit=1", "limit=5", "limit=7&sort=asc", "limit=3&status=open", "limit=4&metadata[order]=%C3%A9&sort=asc"],
)
def test_pages_equal_those_of_the_api_in_both_directions(api: Api, shop: None, query: str) -> None:
    forward = list(walk(ShopPayments, query, "next"))
    backward = list(walk(ShopPayments, forward[-1][0], "previous"))

    for page_query, page in [*forward, *backward]:
        assert page == api.get(f"/v2/payments?{page_query}").json()
    ids = [payment["id"] for _, page in forward for payment in page["_embedded"]["payments"]]
    assert len(ids) == len(set(ids)) == (16 if "status" in query else 24)


@pytest.mark.parametrize("query", ["from=pt_unknown", "from=pt_other", "from=pt_test", "limit=0", "status=nonsense"])
def test_invalid_parameter_is_refused(shop: None, query: str) -> None:
    status, _ = fetch(ShopPayments, query)

    assert status == 400


def test_page_starts_at_a_payment_of_the_views_queryset(shop: None) -> None:
    """`pt_03_` has succeeded, and `pt_04_` is open."""
    statuses = [fetch(PaidPayments, f"from={payment_id}")[0] for payment_id in ("pt_03_", "pt_04_")]
    filtered, page = fetch(ShopPayments, "from=pt_03_&status=open&limit=1")

    assert (statuses, filtered) == ([200, 400], 200)
    assert [payment["id"] for payment in page["_embedded"]["payments"]] == ["pt_02_"]


class Unfiltered(ShopPayments):
    """A view without filters, with parameters of its own."""

    filter_backends = []


class Named(BaseFilterBackend):
    """A filter of the project."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        return queryset.filter(status=request.query_params["state"])


class OwnFilter(ShopPayments):
    """A view whose only filter is one of the project."""

    filter_backends = [Named]


@pytest.mark.parametrize("view", [ShopPayments, Unfiltered])
def test_view_without_filters_pages_too(shop: None, view: type[ShopPayments]) -> None:
    with CaptureQueriesContext(connection) as statements:
        _, page = fetch(view, "from=pt_05_&limit=2")

    assert len(statements) == 1
    assert [payment["id"] for payment in page["_embedded"]["payments"]] == ["pt_05_", "pt_04_"]
    assert "from=pt_07_" in page["_links"]["previous"]["href"]


@pytest.mark.parametrize("view", [Unfiltered, OwnFilter])
def test_links_of_a_view_keep_its_own_parameters(shop: None, view: type[ShopPayments]) -> None:
    pages = [page for _, page in walk(view, "limit=5&state=open&name=caf%C3%A9&name=%26", "next")]

    ids = [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]
    assert len(ids) == len(set(ids)) == (24 if view is Unfiltered else 16)
    assert {page["_links"]["self"]["href"].partition("&state")[2] for page in pages} == {
        "=open&name=caf%C3%A9&name=%26"
    }


class OwnMethod(ShopPayments):
    """A view that filters in its own method."""

    def filter_queryset(self, queryset: Any) -> Any:
        return super().filter_queryset(queryset).filter(status="open")


def test_page_can_start_at_a_payment_that_filters_of_the_view_no_longer_select(shop: None) -> None:
    _, first = fetch(OwnMethod, "limit=2")
    query = first["_links"]["next"]["href"].partition("?")[2]
    Payment.objects.filter(id=query.partition("from=")[2]).update(status="failed")

    status, following = fetch(OwnMethod, query)

    assert status == 200
    assert [payment["id"] for payment in following["_embedded"]["payments"]] == ["pt_19_", "pt_17_"]


def test_filter_without_its_pagination_says_what_it_needs(shop: None) -> None:
    class View(ShopPayments):
        pagination_class = None  # type: ignore[assignment]

    with pytest.raises(ImproperlyConfigured, match="needs pagination_class = KeysetPagination"):
        fetch(View)


@pytest.mark.parametrize("query", ["limit=0", "limit=1&limit=2", "from=x", "from=pt_unknown"])
def test_invalid_page_of_a_view_without_filters_is_refused(shop: None, query: str) -> None:
    assert fetch(Unfiltered, query)[0] == 400


def test_subclass_of_the_serializer_adds_fields(shop: None) -> None:
    class Named(PaymentSerializer):
        def to_representation(self, instance: Any) -> Any:
            return super().to_representation(instance) | {"name": instance.pk.upper()}

    class View(ShopPayments):
        serializer_class = Named

    _, page = fetch(View, "limit=2")

    assert [payment["name"] for payment in page["_embedded"]["payments"]] == ["PT_23_", "PT_22_"]


@pytest.mark.parametrize("many", [True, False])
def test_serializer_without_a_request_says_what_it_needs(shop: None, many: bool) -> None:
    payments = Payment.objects.all() if many else Payment.objects.first()

    with pytest.raises(LookupError, match="PaymentSerializer needs context"):
        _ = PaymentSerializer(payments, many=many).data
