"""The view of the list and its URL."""

from typing import Any

from django.urls import path
from rest_framework.generics import ListAPIView
from rest_framework.pagination import CursorPagination

from benchmarks.peers.stock_drf.models import Payment
from benchmarks.peers.stock_drf.serializers import PaymentSerializer


class Pagination(CursorPagination):
    """Newest first."""

    ordering = ("-created_at", "-id")
    page_size = 20
    page_size_query_param = "limit"
    max_page_size = 250


class PaymentList(ListAPIView[Payment]):
    """The payments of the API key's organization and mode."""

    serializer_class = PaymentSerializer
    pagination_class = Pagination

    def get_queryset(self) -> Any:
        key = self.request.auth
        return Payment.objects.filter(organization_id=key.organization_id, mode=key.mode)  # type: ignore[union-attr]


urlpatterns = [path("v2/payments", PaymentList.as_view())]
