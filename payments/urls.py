"""Paths of the API. None ends in a slash, and none redirects: a redirect would lose the Authorization header."""

from django.urls import path

from payments.handlers import nothing_here
from payments.views import PaymentDetail, PaymentList

urlpatterns = [
    path("payments", PaymentList.as_view(), name="payment-list"),
    path("payments/<str:payment_id>", PaymentDetail.as_view(), name="payment-detail"),
    path("", nothing_here),
    path("<path:rest>", nothing_here),
]
