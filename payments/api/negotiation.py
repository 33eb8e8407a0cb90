"""Which form the client asked for: there is one, under several names."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from payments.hal import HAL, HTML

# From 0 to 1, in as many digits as anybody sends: Java's own client says `q=.2`.
QUALITY = re.compile(r"0?\.[0-9]+|0\.?|1(?:\.0*)?")
QUOTED = re.compile(r'"[^"]*"')

# Clients send the same header again and again. A long one is nobody's habit; kept, it would be memory for the asking.
HEADERS_KEPT = 128
KEPT_LENGTH_MAX = 512


class HALNegotiation(BaseContentNegotiation):
    """Answers in HAL whoever accepts that or JSON; in HTML, where there is a renderer for it, whoever prefers it."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Return none: nothing reads a body here, whatever Content-Type came with it."""
        return None

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        by_media_type = {renderer.media_type: renderer for renderer in renderers}
        accepted = qualities(request.META)
        if HTML in by_media_type and prefers_html(accepted):
            return by_media_type[HTML], HTML
        if hal_quality(accepted) > 0:
            return by_media_type[HAL], HAL
        raise NotAcceptable


def qualities(meta: Mapping[str, Any]) -> Mapping[str, float]:
    """Return what a request accepts, each range with its quality."""
    header = meta.get("HTTP_ACCEPT", "")
    return kept_qualities(header) if len(header) <= KEPT_LENGTH_MAX else accepted_qualities(header)


def accepted_qualities(header: str) -> Mapping[str, float]:
    """Return the ranges of an Accept header, each with its quality (RFC 9110, 12.5.1); an empty one accepts all.

    Not by Django's `parse_header_parameters`: it fails on an encoding that it does not know, and takes seconds to read
    what is long and quoted.
    """
    accepted: dict[str, float] = {}
    for item in QUOTED.sub("", header).lower().split(",") if header.strip() else ["*/*"]:
        media_range, *parameters = map(str.strip, item.split(";"))
        accepted[media_range] = max(quality(parameters), accepted.get(media_range, 0))
    return accepted


kept_qualities = lru_cache(HEADERS_KEPT)(accepted_qualities)


def prefers_html(accepted: Mapping[str, float]) -> bool:
    """Tell whether a page is what was asked for, as browsers do."""
    return accepted.get(HTML, 0) > hal_quality(accepted)


def quality(parameters: list[str]) -> float:
    """Return what `q` says, else 1; what is no weight accepts nothing."""
    named = (parameter.partition("=") for parameter in parameters)
    *_, weight = ["1", *(value.strip() for name, _, value in named if name.strip() == "q")]
    return float(weight) if QUALITY.fullmatch(weight) else 0


def hal_quality(accepted: Mapping[str, float]) -> float:
    """Return the quality of HAL: that of its own range, else of JSON where that is accepted, else of the narrowest."""
    if HAL in accepted:
        return accepted[HAL]
    if json := accepted.get("application/json"):
        return json
    return accepted.get("application/*", accepted.get("*/*", 0))
