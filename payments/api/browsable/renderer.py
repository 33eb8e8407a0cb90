"""Renders a response as a page: the document with clickable links, and a form for the parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from rest_framework.renderers import BrowsableAPIRenderer

from payments.api.browsable.form import form_context
from payments.api.problems import Problem
from payments.api.renderers import HALRenderer, ProblemRenderer

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

# The URL of a link in an indented JSON document.
HREF = re.compile(r'(?<="href": ")(https?://[^"\\]+)')


class PageRenderer(BrowsableAPIRenderer):
    """DRF's browsable API for GET."""

    def get_content(
        self, renderer: Any, data: Any, accepted_media_type: str | None, renderer_context: Any
    ) -> SafeString:
        return with_clickable_links(HALRenderer().render(data, renderer_context={"indent": 2}).decode())

    def get_filter_form(self, data: Any, view: APIView, request: Request) -> None:
        """Return None: our form is part of the page, also of an error page, and not in a modal window."""

    def get_context(self, data: Any, accepted_media_type: str | None, renderer_context: Any) -> dict[str, Any]:
        context = super().get_context(data, accepted_media_type, renderer_context)
        problem = data if isinstance(data, Problem) else None
        if problem:
            context["response_headers"]["Content-Type"] = ProblemRenderer.media_type
        return {
            **context,
            "problem": problem,
            "links": {} if problem else links_of(data),
            "is_list": getattr(context["view"], "has_filters", False),
            **form_context(context["request"].query_params.dict(), problem),
        }


def links_of(document: Any) -> dict[str, str]:
    """Return the URLs of a document's links by relation."""
    links = msgspec.json.decode(HALRenderer().render(document)).get("_links", {})
    return {relation: link["href"] for relation, link in links.items()}


def with_clickable_links(document: str) -> SafeString:
    """Return the text of a document as HTML in which the URLs of links are links."""
    pieces = HREF.split(document)
    pieces[::2] = map(escape, pieces[::2])
    pieces[1::2] = [format_html('<a href="{0}">{0}</a>', url) for url in pieces[1::2]]
    return mark_safe("".join(pieces))  # noqa: S308  each piece is escaped
