"""The URLs of the application: the API below `v2/`, and its documentation. A project includes them at any path."""

from django.urls import include, path, re_path

from payments.api.imports import PaymentImports
from payments.api.totals import PaymentTotals
from payments.api.views import PaymentChanges, PaymentDetail, PaymentList, not_found

app_name = "payments"

urlpatterns = [
    # No path of the API ends in a slash or redirects: a redirect would lose the Authorization header.
    path("v2/payments", PaymentList.as_view(), name="payment-list"),
    path("v2/payments/changes", PaymentChanges.as_view(), name="payment-changes"),
    path("v2/payments/imports", PaymentImports.as_view(), name="payment-imports"),
    path("v2/payments/totals", PaymentTotals.as_view(), name="payment-totals"),
    path("v2/payments/<str:payment_id>", PaymentDetail.as_view(), name="payment-detail"),
    re_path(r"^v2(?:/|\Z)", not_found),  # all other paths, also with line feeds, which `<path:...>` does not match
    path("docs/", include("payments.docs.views")),
]
