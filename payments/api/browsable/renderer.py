"""An answer as a page: the document, whose links can be followed, and a form that asks for another one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from rest_framework.renderers import BrowsableAPIRenderer

from payments.api.browsable.form import form
from payments.api.problems import Problem
from payments.api.renderers import HALRenderer, ProblemRenderer

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

# In a document that is written with a space behind each colon.
HREF = re.compile(r'(?<="href": ")(https?://[^"\\]+)')


class PageRenderer(BrowsableAPIRenderer):
    """DRF's page, without what only other methods than GET need."""

    def get_content(
        self, renderer: Any, data: Any, accepted_media_type: str | None, renderer_context: Any
    ) -> SafeString:
        return linked(HALRenderer().render(data, renderer_context={"indent": 2}).decode())

    def get_filter_form(self, data: Any, view: APIView, request: Request) -> None:
        """Return none: ours stands within the page, a refusal's too, rather than in a window before it."""

    def get_context(self, data: Any, accepted_media_type: str | None, renderer_context: Any) -> dict[str, Any]:
        context = super().get_context(data, accepted_media_type, renderer_context)
        problem = data if isinstance(data, Problem) else None
        if problem:
            context["response_headers"]["Content-Type"] = ProblemRenderer.media_type
        return {
            **context,
            "problem": problem,
            "links": {} if problem else links(data),
            "is_list": context["view"].pagination_class is not None,
            **form(context["request"].query_params.dict(), problem),
        }


def links(document: Any) -> dict[str, str]:
    """Return what a document's links name, as whoever reads it finds them."""
    found = msgspec.json.decode(HALRenderer().render(document)).get("_links", {})
    return {relation: link["href"] for relation, link in found.items()}


def linked(document: str) -> SafeString:
    """Return a document's text as HTML: what its links name can be clicked, and is asked for to the letter."""
    pieces = HREF.split(document)
    pieces[::2] = map(escape, pieces[::2])
    pieces[1::2] = [format_html('<a href="{0}">{0}</a>', address) for address in pieces[1::2]]
    return mark_safe("".join(pieces))  # noqa: S308  each piece is escaped
