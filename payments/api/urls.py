"""The paths of the API. No path ends in a slash or redirects: a redirect would lose the Authorization header."""

from django.urls import path, re_path

from payments.api.error_pages import api_not_found
from payments.api.views import PaymentChanges, PaymentDetail, PaymentList

urlpatterns = [
    path("payments", PaymentList.as_view(), name="payment-list"),
    path("payments/changes", PaymentChanges.as_view(), name="payment-changes"),
    path("payments/<str:payment_id>", PaymentDetail.as_view(), name="payment-detail"),
    re_path("", api_not_found),  # all other paths, also with line feeds, which `<path:...>` does not match
]
