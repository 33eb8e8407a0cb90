"""Views of the documentation."""

from functools import cache

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.views.decorators.http import require_safe

from payments.api.openapi import EXAMPLE_URL, openapi_document
from payments.docs.pages import DocsPage, render_page
from payments.links import Links
from payments.record import encode


@require_safe
def show_page(request: HttpRequest, *, page: DocsPage) -> HttpResponse:
    """Return a page. Its examples have this service's address."""
    document = render_page(page)
    body = document.body.replace(EXAMPLE_URL, escape(service_url(request)))
    return render(request, "docs/page.html", {"document": document, "body": body, "page": page})


def service_url(request: HttpRequest) -> str:
    return Links.of(request).documentation.removesuffix("/docs/")


@require_safe
@csp_update({"img-src": "data:"})
def interactive(request: HttpRequest) -> HttpResponse:
    """Return Swagger UI. Only this page may load images from `data:` URLs, because Swagger UI uses them."""
    return render(request, "docs/interactive.html")


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document, with this service as its server."""
    address = encode(service_url(request)).decode().strip('"')
    document = openapi_json().replace(EXAMPLE_URL, address)
    return HttpResponse(document, content_type="application/vnd.oai.openapi+json")


@cache
def openapi_json() -> str:
    return encode(openapi_document()).decode()
