"""The API as pages for browsers, in development only: Basic authentication, and a renderer.

A page has the document with clickable links, and a form for the parameters. Browsers cannot send a Bearer header: the
user name is the API key. A login form with a session would turn a cookie into a credential for the API.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.http import QueryDict
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from msgspec import UNSET
from rest_framework.renderers import BrowsableAPIRenderer
from rest_framework.request import Request

from payments.access.authentication import BearerAuthentication
from payments.access.clients import client_with_key
from payments.access.keys import AuthenticatedKey
from payments.api.errors import Problem
from payments.api.parameters import LIMIT_DEFAULT, LIMIT_MAX, bracket_form
from payments.hal import HTML, PROBLEM
from payments.listing.filters import BOUNDS, FILTERS, ORDERS, RANGES, SINGLE_FILTERS

CHALLENGE = 'Basic realm="payments", charset="UTF-8"'

# The URL of a link in an indented JSON document.
HREF = re.compile(r'(?<="href": ")(https?://[^"\\]+)')

# The filters that are no bounds of a range.
PLAIN_FILTERS = [name for name in SINGLE_FILTERS if "[" not in name]


class BrowserAuthentication(BearerAuthentication):
    """Accepts Basic credentials (RFC 7617) for pages. For programs, responses are the same as in production."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, AuthenticatedKey] | None:
        scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() == "basic" and is_page(request):
            return self.authenticate_client(client_with_key(user_name(credentials)))
        return super().authenticate(request)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE if is_page(request) else super().authenticate_header(request)


def is_page(request: Request) -> bool:
    return bool(request.accepted_media_type == HTML)


def user_name(credentials: str) -> str:
    """Return the user name; an empty text if there is a password or the credentials are malformed."""
    try:
        text = b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    name, _, password = text.partition(":")
    return "" if password else name


class Field(NamedTuple):
    """A field of the form: a parameter, its value in the request, and the error of that value."""

    name: str
    value: str
    error: str
    example: str = ""
    rule: str = ""


class PageRenderer(BrowsableAPIRenderer):
    """DRF's browsable API for GET."""

    template = "payments/browsable.html"

    def get_content(
        self, renderer: Any, data: Any, accepted_media_type: str | None, renderer_context: Any
    ) -> SafeString:
        return with_clickable_links(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())

    def get_filter_form(self, data: Any, view: Any, request: Request) -> None:
        """Return None: our form is part of the page, also of an error page, and not in a modal window."""

    def get_context(self, data: Any, accepted_media_type: str | None, renderer_context: Any) -> dict[str, Any]:
        context = super().get_context(data, accepted_media_type, renderer_context)
        problem = data if isinstance(data, Problem) else None
        if problem:
            context["response_headers"]["Content-Type"] = PROBLEM
        document_links = {} if problem else msgspec.json.decode(msgspec.json.encode(data)).get("_links", {})
        return {
            **context,
            "code_style": None,  # its tag would break the content security policy
            "problem": problem,
            "links": {relation: link["href"] for relation, link in document_links.items()},
            "is_list": getattr(context["view"], "has_filters", False),
            **form_context(form_values(context["request"].query_params), problem),
        }


def form_values(query: QueryDict) -> dict[str, str]:
    """Return the values of the form's fields. The parameters may have any form. A list becomes one text."""
    values: dict[str, list[str]] = {}
    for name, text in (bracket_form(name, text) for name, texts in query.lists() for text in texts):
        values.setdefault(name, []).append(text)
    return {name: ",".join(texts) for name, texts in values.items()}


def form_context(parameters: Mapping[str, str], problem: Problem | None) -> dict[str, Any]:
    errors = {problem.field: problem.detail} if problem and problem.field is not UNSET else {}

    def field(name: str, **texts: str) -> Field:
        return Field(name, parameters.get(name, ""), errors.get(name, ""), **texts)

    def filter_field(name: str) -> Field:
        filter_ = FILTERS[name]
        example = ",".join(filter_.example) if filter_.takes_list else filter_.example
        return field(name, example=example, rule=filter_.rule)

    return {
        "fields": [
            field("limit", example=str(LIMIT_DEFAULT), rule=f"a whole number from 1 to {LIMIT_MAX}"),
            *map(filter_field, PLAIN_FILTERS),
        ],
        "orders": ORDERS,
        "order": field("sort"),
        "ranges": [(name, [(bound, filter_field(f"{name}[{bound}]")) for bound in BOUNDS]) for name in RANGES],
        "pairs": [field(name) for name in parameters if name.startswith("metadata[")],
        "is_open": bool(errors) or not parameters.keys() <= {"limit", "from"},
    }


def with_clickable_links(document: str) -> SafeString:
    pieces = HREF.split(document)
    pieces[::2] = map(escape, pieces[::2])
    pieces[1::2] = [format_html('<a href="{0}">{0}</a>', url) for url in pieces[1::2]]
    return mark_safe("".join(pieces))  # noqa: S308  each piece is escaped
