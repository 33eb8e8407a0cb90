"""Views of the documentation."""

from functools import cache
from typing import Any

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.html import escape
from django.utils.module_loading import import_string
from django.views.decorators.http import require_safe

from payments.docs.pages import Page, render_page
from payments.links import Addresses

# The service's address in the Markdown files.
EXAMPLE_URL = "https://pay.example"


@require_safe
def show_page(request: HttpRequest, *, page: Page) -> HttpResponse:
    """Return a page. Its examples have this service's address."""
    document = render_page(page)
    body = document.body.replace(EXAMPLE_URL, escape(service_url(request)))
    return render(request, "docs/page.html", {"document": document, "body": body, "page": page})


def service_url(request: HttpRequest) -> str:
    return Addresses.of(request).documentation.removesuffix("/docs/")


@require_safe
@csp_update({"img-src": "data:"})
def interactive(request: HttpRequest) -> HttpResponse:
    """Return Swagger UI. Only this page may load images from `data:` URLs, because Swagger UI uses them."""
    return render(request, "docs/interactive.html")


def openapi(request: HttpRequest) -> HttpResponseBase:
    """Return the OpenAPI document."""
    response: HttpResponseBase = openapi_view()(request)
    return response


@cache
def openapi_view() -> Any:
    """Return drf-spectacular's view. The late import saves 4 MB in the workers that never serve the document."""
    return import_string("drf_spectacular.views.SpectacularJSONAPIView").as_view()
