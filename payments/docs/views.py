"""Views of the documentation."""

from functools import cache

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.module_loading import import_string
from django.views.decorators.http import require_safe

from payments.api.links import Links
from payments.api.openapi import EXAMPLE_URL, openapi_document
from payments.docs.pages import PAGES, DocsPage, render_page
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
def search_index(request: HttpRequest) -> HttpResponse:
    """Return the sections of all pages. The browser searches them, so a search needs no request."""
    entries = [
        {"url": f"{page.url}#{anchor}", "page": render_page(page).title, "title": title, "text": text}
        for page in PAGES
        for anchor, title, text in render_page(page).texts
    ]
    return json_response(request, encode(entries).decode(), content_type="application/json")


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    return json_response(request, openapi_json(), content_type="application/vnd.oai.openapi+json")


@require_safe
def payment_schema(request: HttpRequest) -> HttpResponse:
    return json_response(request, payment_schema_json(), content_type="application/schema+json")


def json_response(request: HttpRequest, document: str, *, content_type: str) -> HttpResponse:
    address = encode(service_url(request)).decode().strip('"')
    return HttpResponse(document.replace(EXAMPLE_URL, address), content_type=content_type)


@cache
def openapi_json() -> str:
    return encode(openapi_document()).decode()


@cache
def payment_schema_json() -> str:
    """Return the schema. The late import saves memory in the workers that never serve it."""
    schema = import_string("payments.ingest.schema.payment_schema")()
    return encode({"$id": f"{EXAMPLE_URL}/docs/payment.schema.json", **schema}).decode()
