"""Which form the client asked for: there is one, under several names."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from django.utils.http import parse_header_parameters
from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from payments.hal import HAL, HTML

QUALITY = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


# Clients send the same header again and again.
HEADERS_KEPT = 128


class HALNegotiation(BaseContentNegotiation):
    """Answers in HAL whoever accepts that or JSON; in HTML, where there is a renderer for it, whoever prefers it."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Return none: nothing reads a body here, whatever Content-Type came with it."""
        return None

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        by_media_type = {renderer.media_type: renderer for renderer in renderers}
        accepted = accepted_qualities(request.META.get("HTTP_ACCEPT", ""))
        quality = hal_quality(accepted)
        if HTML in by_media_type and accepted.get(HTML, 0) > quality:
            return by_media_type[HTML], HTML
        if quality > 0:
            return by_media_type[HAL], HAL
        raise NotAcceptable


@lru_cache(HEADERS_KEPT)
def accepted_qualities(header: str) -> Mapping[str, float]:
    """Return the ranges of an Accept header, each with its quality (RFC 9110, 12.5.1); an empty one accepts all."""
    accepted: dict[str, float] = {}
    for item in header.split(",") if header.strip() else ["*/*"]:
        media_range, parameters = parse_header_parameters(item)
        weight = parameters.get("q", "1")
        quality = float(weight) if QUALITY.fullmatch(weight) else 0  # what is no weight accepts nothing
        accepted[media_range] = max(quality, accepted.get(media_range, 0))
    return accepted


def hal_quality(accepted: Mapping[str, float]) -> float:
    """Return the quality of HAL: that of its own range, else of JSON where that is accepted, else of the narrowest."""
    if HAL in accepted:
        return accepted[HAL]
    if json := accepted.get("application/json"):
        return json
    return accepted.get("application/*", accepted.get("*/*", 0))
