"""Paths of the API. None ends in a slash, and none redirects: a redirect would lose the Authorization header."""

from django.urls import path, re_path

from payments.api.error_pages import nothing_here
from payments.api.views import PaymentDetail, PaymentList

urlpatterns = [
    path("payments", PaymentList.as_view(), name="payment-list"),
    path("payments/<str:payment_id>", PaymentDetail.as_view(), name="payment-detail"),
    re_path("", nothing_here),  # anything else, with line feeds too, which Django's <path:...> leaves out
]
