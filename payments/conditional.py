"""Answers that a client may keep and ask about again (RFC 9110, 13): ETag, If-None-Match, 304."""

from typing import Any, cast

from django.http import HttpRequest, HttpResponseBase, HttpResponseNotModified
from django.utils.http import parse_etags
from xxhash import xxh3_128_hexdigest

KEPT_HEADERS = ("Cache-Control", "ETag", "RateLimit", "RateLimit-Policy", "Vary")


def answer_conditionally(request: HttpRequest, response: Any) -> HttpResponseBase:
    """Tell caches what `response` depends on; return a 304 in its place to a client that has it already."""
    etag = f'"{xxh3_128_hexdigest(response.content)}"'
    response.headers["Cache-Control"] = "private, no-cache"
    response.headers["Vary"] = "Accept, Authorization"
    response.headers["ETag"] = etag
    if "HTTP_IF_NONE_MATCH" in request.META and names(request.META["HTTP_IF_NONE_MATCH"], etag):
        headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        return HttpResponseNotModified(headers={**headers, "Content-Length": str(len(response.content))})
    return cast("HttpResponseBase", response)


def names(if_none_match: str, etag: str) -> bool:
    """Tell whether a client names the ETag, be it weakly: a proxy that compresses makes it weak."""
    return any(known == "*" or known.removeprefix("W/") == etag for known in parse_etags(if_none_match))
