"""The two resources of the API: whose payments they show, and by which classes."""

import re
from typing import Any, cast

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.exceptions import NotFound
from rest_framework.generics import GenericAPIView, ListAPIView, RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from payments.conditional import answer_conditionally
from payments.models import PAYMENT_ID, ApiKey, Payment, PaymentQuerySet
from payments.negotiation import HALNegotiation
from payments.pagination import KeysetPagination
from payments.parameters import single_values
from payments.serializers import PaymentSerializer


class PaymentView(GenericAPIView[Payment]):
    """What the list and the record share: payments of the key's own organization and mode, kept by the client alone."""

    content_negotiation_class = HALNegotiation
    serializer_class = PaymentSerializer

    def get_queryset(self) -> PaymentQuerySet:
        if getattr(self, "swagger_fake_view", False):
            return Payment.objects.none()
        return Payment.objects.visible_to(cast("ApiKey", self.request.auth))

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        return answer_conditionally(request, super().finalize_response(request, response, *args, **kwargs))


@extend_schema_view(get=extend_schema(operation_id="listPayments", summary="List payments", tags=["payments"]))
class PaymentList(PaymentView, ListAPIView[Payment]):
    """Payments, newest first, page by page."""

    name = "Payments"
    pagination_class = KeysetPagination


@extend_schema_view(get=extend_schema(operation_id="getPayment", summary="Get one payment", tags=["payments"]))
class PaymentDetail(PaymentView, RetrieveAPIView[Payment]):
    """One payment."""

    name = "Payment"

    def get_object(self) -> Payment:
        single_values(self.request.query_params, known=())
        payment_id = self.kwargs["payment_id"]
        payment = self.get_queryset().filter(id=payment_id).first() if re.fullmatch(PAYMENT_ID, payment_id) else None
        if payment is None:
            raise NotFound
        return payment
