"""URLs of the documentation."""

from django.apps import apps
from django.urls import path

from payments.docs.pages import PAGES
from payments.docs.views import interactive, openapi, payment_schema, search_index, show_markdown, show_page

urlpatterns = [
    *(path(page.path, show_page, {"page": page}, name=page.url_name) for page in PAGES),
    *(path(page.markdown_path, show_markdown, {"page": page}) for page in PAGES),
    path("search.json", search_index, name="documentation-search"),
    path("openapi.json", openapi, name="openapi"),
    path("payment.schema.json", payment_schema, name="payment-schema"),
]

if apps.is_installed("drf_spectacular_sidecar"):  # it has the files of Swagger UI
    urlpatterns.append(path("interactive/", interactive, name="documentation-interactive"))
