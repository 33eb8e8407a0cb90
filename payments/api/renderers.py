"""Renders documents as HAL, and selects HAL under several media types, or HTML."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from payments.hal import HAL, HTML

# From 0 to 1. RFC 9110 allows three digits and requires the leading 0, but Java's client sends `q=.2`.
QUALITY = re.compile(r"0?\.[0-9]+|0\.?|1(?:\.0*)?")
QUOTED = re.compile(r'"[^"]*"')

# Clients repeat a few headers. Long headers are not cached: each could be different and fill the memory.
CACHED_HEADERS_MAX = 128
CACHED_LENGTH_MAX = 512


class HALRenderer(BaseRenderer):
    """Compact UTF-8 JSON."""

    media_type = HAL
    format = "hal"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return msgspec.json.encode(data)


class HALNegotiation(BaseContentNegotiation):
    """Selects HAL if the client accepts it or JSON; in development, HTML if the client prefers it."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Return no parser: most views read no bodies."""
        return None

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the renderer and its media type. `format_suffix` is not used.

        :raises NotAcceptable: the client accepts no media type of the API
        """
        by_media_type = {renderer.media_type: renderer for renderer in renderers}
        header = request.META.get("HTTP_ACCEPT", "")
        choose = cached_media_type if len(header) <= CACHED_LENGTH_MAX else choose_media_type
        media_type = choose(header, HTML in by_media_type)
        if media_type is None:
            raise NotAcceptable
        return by_media_type[media_type], media_type


def choose_media_type(header: str, has_html: bool) -> str | None:  # noqa: FBT001  positional, for its cache
    """Return the media type for an Accept header; None if the client accepts no media type of the API."""
    accepted = parse_accept(header)
    if has_html and prefers_html(accepted):
        return HTML
    return HAL if hal_quality(accepted) > 0 else None


cached_media_type = lru_cache(CACHED_HEADERS_MAX)(choose_media_type)


def parse_accept(header: str) -> Mapping[str, float]:
    """Return the media ranges of an Accept header with their quality (RFC 9110, 12.5.1). An empty one accepts all.

    Clients without a key reach this code, so it takes linear time. Django's `parse_header_parameters` raises for an
    unknown encoding, and takes seconds for a long quoted text.
    """
    accepted: dict[str, float] = {}
    for item in QUOTED.sub("", header).lower().split(",") if header.strip() else ["*/*"]:
        media_range, *parameters = map(str.strip, item.split(";"))
        accepted[media_range] = max(quality(parameters), accepted.get(media_range, 0))
    return accepted


def prefers_html(accepted: Mapping[str, float]) -> bool:
    return accepted.get(HTML, 0) > hal_quality(accepted)


def quality(parameters: list[str]) -> float:
    """Return the value of the parameter `q`; 1 without it, 0 if it is invalid."""
    pairs = (parameter.partition("=") for parameter in parameters)
    *_, weight = ["1", *(value.strip() for name, _, value in pairs if name.strip() == "q")]
    return float(weight) if QUALITY.fullmatch(weight) else 0


def hal_quality(accepted: Mapping[str, float]) -> float:
    """Return the quality of HAL. If the header lacks HAL, JSON counts, and without JSON the narrowest wildcard."""
    if HAL in accepted:
        return accepted[HAL]
    if json := accepted.get("application/json"):
        return json
    return accepted.get("application/*", accepted.get("*/*", 0))
