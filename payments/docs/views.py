"""Views of the documentation, and their URLs."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

from django import VERSION
from django.apps import apps
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import path
from django.utils.html import escape
from django.utils.module_loading import import_string
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from payments.api.links import Links
from payments.api.openapi import EXAMPLE_URL, openapi_document
from payments.docs.pages import FOLDER, PAGES, DocsPage, read_file, render_page
from payments.record import encode

# After an update of the service, a cached page can lack static files for so long.
CACHED_SECONDS = 300


def shared(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Decorate a view that is the same for all clients: proxies and browsers can cache its response."""
    return require_safe(cache_control(public=True, max_age=CACHED_SECONDS)(view))


def allow_data_images(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view: add `data:` to the image sources of the project's content security policy, if it has one."""
    decorated = view
    if VERSION >= (6,):
        policy: dict[str, Any] = settings.SECURE_CSP
        override = import_string("django.views.decorators.csp.csp_override")
        images = policy.get("img-src", policy.get("default-src", []))
        sources = [*([images] if isinstance(images, str) else images), "data:"]
        decorated = override({**policy, "img-src": sources} if policy else {})(view)
    elif find_spec("csp"):
        decorated = import_string("csp.decorators.csp_update")({"img-src": "data:"})(view)
    return decorated


@shared
def show_page(request: HttpRequest, *, page: DocsPage) -> HttpResponse:
    document = render_page(page)
    body = document.body.replace(EXAMPLE_URL, escape(service_url(request)))
    return render(request, "docs/page.html", {"document": document, "body": body, "page": page})


@shared
def show_markdown(request: HttpRequest, *, page: DocsPage) -> HttpResponse:
    return text_response(request, FOLDER.sub("", read_file(page.file)), content_type="text/markdown; charset=utf-8")


@shared
def llms(request: HttpRequest) -> HttpResponse:
    """Return the list of the documents for language models (llmstxt.org)."""
    return text_response(request, read_file("api/llms.txt"), content_type="text/plain; charset=utf-8")


def text_response(request: HttpRequest, text: str, *, content_type: str) -> HttpResponse:
    return HttpResponse(text.replace(EXAMPLE_URL, service_url(request)), content_type=content_type)


def service_url(request: HttpRequest) -> str:
    return Links.of(request).url("payments:documentation").removesuffix("/docs/")


@shared
@allow_data_images
def interactive(request: HttpRequest) -> HttpResponse:
    """Return Swagger UI. Only this page may load images from `data:` URLs, because Swagger UI uses them."""
    return render(request, "docs/interactive.html")


@shared
def search_index(request: HttpRequest) -> HttpResponse:
    """Return the sections of all pages. The browser searches them, so a search needs no request."""
    entries = [
        {"url": f"{page.url}#{section.anchor}", "page": render_page(page).title, **section._asdict()}
        for page in PAGES
        for section in render_page(page).texts
    ]
    return json_response(request, encode(entries).decode(), content_type="application/json")


@shared
def openapi(request: HttpRequest) -> HttpResponse:
    return json_response(request, openapi_json(), content_type="application/vnd.oai.openapi+json")


@shared
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


urlpatterns = [
    *(path(page.path, show_page, {"page": page}, name=page.url_name) for page in PAGES),
    *(path(page.markdown_path, show_markdown, {"page": page}) for page in PAGES),
    path("search.json", search_index, name="documentation-search"),
    path("openapi.json", openapi, name="openapi"),
    path("payment.schema.json", payment_schema, name="payment-schema"),
]

if apps.is_installed("drf_spectacular_sidecar"):  # it has the files of Swagger UI
    urlpatterns.append(path("interactive/", interactive, name="documentation-interactive"))
