"""Pages for whoever asks for them."""

from functools import cache
from typing import Any

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.html import escape
from django.utils.module_loading import import_string
from django.views.decorators.http import require_safe

from payments.docs.pages import Page, rendered
from payments.links import Addresses

# What stands in the documents for the service's own address.
EXAMPLE = "https://pay.example"


@require_safe
def show(request: HttpRequest, *, page: Page) -> HttpResponse:
    """Show a page, whose examples ask this service."""
    document = rendered(page)
    body = document.body.replace(EXAMPLE, escape(service_address(request)))
    return render(request, "docs/page.html", {"document": document, "body": body, "page": page})


def service_address(request: HttpRequest) -> str:
    return Addresses.of(request).documentation.removesuffix("/docs/")


@require_safe
@csp_update({"img-src": "data:"})
def interactive(request: HttpRequest) -> HttpResponse:
    """Show the API to try. Swagger UI draws small pictures by itself, as no other page here may."""
    return render(request, "docs/interactive.html")


def openapi(request: HttpRequest) -> HttpResponseBase:
    """Give the OpenAPI document."""
    response: HttpResponseBase = openapi_view()(request)
    return response


@cache
def openapi_view() -> Any:
    """Return drf-spectacular's view, which takes 4 MB in a worker and for which most are never asked."""
    return import_string("drf_spectacular.views.SpectacularJSONAPIView").as_view()
