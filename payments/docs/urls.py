"""URLs of the documentation."""

from django.urls import path

from payments.docs.pages import PAGES
from payments.docs.views import interactive, openapi, payment_schema, search_index, show_page

urlpatterns = [
    *(path(page.path, show_page, {"page": page}, name=page.url_name) for page in PAGES),
    path("interactive/", interactive, name="documentation-interactive"),
    path("search.json", search_index, name="documentation-search"),
    path("openapi.json", openapi, name="openapi"),
    path("payment.schema.json", payment_schema, name="payment-schema"),
]
