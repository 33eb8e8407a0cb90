"""The resources of the API: the entry point, the list of payments, the change feed, and one payment; and 404."""

import re
from http import HTTPStatus
from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from payments.api.base import ReadView
from payments.api.errors import DETAILS, describe_refused_host, problem_page
from payments.api.etags import conditional
from payments.api.links import Links
from payments.api.pagination import ChangesPagination, KeysetPagination, SelectionFilter
from payments.api.parameters import parse_query, query_string
from payments.api.renderers import parse_accept, prefers_html
from payments.api.serializers import PaymentSerializer
from payments.hal import HAL, HTML, Link
from payments.listing.content import Query
from payments.listing.query import UnboundPayments, payment_query, visible_payments
from payments.models import PAYMENT_ID
from payments.record import encode


class PageView(ReadView):
    """Payments, page by page. Subclasses define `pagination_class`."""

    paginator: KeysetPagination | ChangesPagination
    serializer_class = PaymentSerializer
    has_filters = False  # whether the browsable API shows a form for filters

    def get_queryset(self) -> UnboundPayments:
        """Return the payments of the key's organization and mode, which are bound when the statement runs."""
        return visible_payments()

    def get_query(self, request: HttpRequest) -> Query:
        return self.paginator.get_query(self.filter_queryset(self.get_queryset()), request)

    @conditional
    def get(self, request: Request, **kwargs: str) -> Any:
        payments = self.paginator.paginate_content(self.reader.content, request)
        records = self.get_serializer(payments, many=True).data
        return self.paginator.get_document(records, path=request.path, links=self.links)


class PaymentList(PageView):
    """Payments, newest first."""

    name = "Payments"
    has_filters = True
    filter_backends = [SelectionFilter]
    pagination_class = KeysetPagination


class PaymentChanges(PageView):
    """Payments in the order in which they were last created or changed."""

    name = "Payment changes"
    pagination_class = ChangesPagination


class PaymentDetail(ReadView):
    """One payment."""

    name = "Payment"
    serializer_class = PaymentSerializer

    def get_query(self, request: HttpRequest) -> Query:
        parse_query(query_string(request.META))  # refuses all parameters
        payment_id = self.kwargs["payment_id"]
        if not re.fullmatch(PAYMENT_ID, payment_id):
            raise NotFound
        return payment_query(payment_id)

    @conditional
    def get(self, request: Request, **kwargs: str) -> Any:
        payments = self.reader.content.rows
        if not payments:
            raise NotFound
        return self.get_serializer(payments[0]).data


@csrf_exempt  # so that POST gets 405, not a CSRF error
@require_safe
@vary_on_headers("Accept")
def root(request: HttpRequest) -> HttpResponse:
    """Return the links of the API. Neither a key nor an acceptable media type is required.

    It does not redirect to the list: clients drop the Authorization header on a redirect.
    """
    if prefers_html(parse_accept(request.META.get("HTTP_ACCEPT", ""))):
        return redirect("payments:documentation")
    links = Links.of(request)
    root_links = {
        "self": Link(href=links.url("root"), type=HAL),
        "payments": Link(href=links.list, type=HAL),
        "changes": Link(href=links.url("payments:payment-changes"), type=HAL),
        "documentation": Link(href=links.url("payments:documentation"), type=HTML),
    }
    return HttpResponse(encode({"_links": root_links}), content_type=HAL)


@csrf_exempt  # so that POST gets 404, not a CSRF error
def not_found(request: HttpRequest) -> HttpResponse:
    """Return 404 for a path below `/v2` without a view. It is a view, so that the response is the same with DEBUG."""
    try:
        Links.of(request)
    except DisallowedHost:
        return problem_page(request, HTTPStatus.BAD_REQUEST, describe_refused_host(request.META))
    return problem_page(request, HTTPStatus.NOT_FOUND, DETAILS[NotFound])
