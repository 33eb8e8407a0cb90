"""Renders documents as HAL and errors as problem+json."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from django.http import HttpResponse
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from payments.hal import HAL


class HALRenderer(BaseRenderer):
    """Compact UTF-8 JSON; indented for the browsable API."""

    media_type = HAL
    format = "hal"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        text = msgspec.json.encode(data)
        if indent := (renderer_context or {}).get("indent"):
            return msgspec.json.format(text, indent=indent)
        return text


class ProblemRenderer(HALRenderer):
    """Renders errors as compact JSON (RFC 9457)."""

    media_type = "application/problem+json"
    format = "problem"


def build_response(request: Request, build_document: Callable[[], Any]) -> HttpResponse:
    """Return the response for a document.

    HAL is rendered at once. DRF's `Response`, which renders later and refers to its view and request, is needed only
    for the templates of the browsable API.
    """
    renderer, document = request.accepted_renderer, build_document()
    if isinstance(renderer, HALRenderer):
        return HttpResponse(renderer.render(document), content_type=renderer.media_type)
    return Response(document)
