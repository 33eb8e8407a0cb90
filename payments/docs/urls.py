"""The documentation's addresses."""

from django.urls import path

from payments.docs.pages import PAGES
from payments.docs.views import interactive, openapi, show

urlpatterns = [
    *(path(page.place, show, {"page": page}, name=page.url_name) for page in PAGES),
    path("interactive/", interactive, name="documentation-interactive"),
    path("openapi.json", openapi, name="openapi"),
]
