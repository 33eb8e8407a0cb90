"""The two resources of the API: whose payments they show, and by which classes."""

import re
from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.db import router
from django.http import HttpRequest, HttpResponseBase
from rest_framework.exceptions import NotFound
from rest_framework.generics import GenericAPIView, ListAPIView, RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_304_NOT_MODIFIED

from payments.access.authentication import AuthenticatedKey
from payments.api.etags import answer_conditionally
from payments.api.negotiation import HALNegotiation
from payments.api.pagination import KeysetPagination
from payments.api.parameters import single_values
from payments.api.responses import answered
from payments.api.serializers import PaymentSerializer
from payments.hal import HAL
from payments.links import Addresses
from payments.listing import Listing, find_payment
from payments.models import PAYMENT_ID, Payment


class PaymentView(GenericAPIView[Payment]):
    """What the list and the record share: payments of the key's own organization and mode, kept by the client alone."""

    http_method_names = ["get", "head", "options"]
    default_response_headers = {"Allow": "GET, HEAD, OPTIONS"}
    content_negotiation_class = HALNegotiation
    serializer_class = PaymentSerializer

    queryset = Payment.objects.none()  # the model, for whoever describes the view

    def get_queryset(self) -> Any:
        """Return what the key sees: a `Listing`, whose SQL is there already, where DRF expects a QuerySet."""
        key = cast("AuthenticatedKey", self.request.auth)
        using = router.db_for_read(self.queryset.model, key=key)
        return Listing(key.access, using=using, revision=key.revision)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        itself = request._request  # noqa: SLF001  Django's own, in which DRF's looks for each attribute
        self.meta = itself.META
        self.addresses = Addresses.of(itself)
        super().initial(request, *args, **kwargs)

    def check_throttles(self, request: Request) -> None:
        if settings.RATE_LIMIT:
            super().check_throttles(request)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer with bytes, and free what they were made of.

        DRF ties the request, the view and the response to each other. A tie that nobody cuts is memory that only the
        garbage collector finds: here a whole page, for each request.
        """
        response: Any = super().dispatch(request, *args, **kwargs)
        if isinstance(response, Response):
            response.render()
            vars(response)["renderer_context"].clear()
        self.request.parser_context.clear()
        vars(self).clear()
        if response.status_code == HTTP_304_NOT_MODIFIED:
            del response.headers["Allow"]
        return cast("HttpResponseBase", response)

    def answer(self, made_of: tuple[Any, ...], whole: Callable[[], HttpResponseBase]) -> HttpResponseBase:
        """Return the answer that is made of these values, or the word that the client has it already."""
        if self.request.accepted_renderer.media_type != HAL:
            return whole()  # a page for people, of whose templates nothing is known here
        known = self.meta.get("HTTP_IF_NONE_MATCH")
        return answer_conditionally(whole, made_of=(self.addresses.named, made_of), known=known)


class PaymentList(PaymentView, ListAPIView[Payment]):
    """Payments, newest first, page by page."""

    name = "Payments"
    operation_id = "listPayments"
    summary = "List payments"
    pagination_class = KeysetPagination

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        rows = self.paginate_queryset(self.get_queryset())
        made_of = cast("KeysetPagination", self.paginator).made_of
        return self.answer(made_of, lambda: self.get_paginated_response(self.get_serializer(rows, many=True).data))


class PaymentDetail(PaymentView, RetrieveAPIView[Payment]):
    """One payment."""

    name = "Payment"
    operation_id = "getPayment"
    summary = "Get one payment"

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        row = self.get_object()
        return self.answer((row,), lambda: answered(request, self.get_serializer(row).data))

    def get_object(self) -> Any:
        single_values(self.meta["QUERY_STRING"])
        payment_id = self.kwargs["payment_id"]
        row = find_payment(self.get_queryset(), payment_id) if re.fullmatch(PAYMENT_ID, payment_id) else None
        if row is None:
            raise NotFound
        return row
