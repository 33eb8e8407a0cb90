"""Answers that a client may keep and ask about again (RFC 9110, 13): ETag, If-None-Match, 304."""

import hashlib
from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseNotModified
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags, quote_etag
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_200_OK

KEPT_HEADERS = ("Cache-Control", "ETag", "Vary")


def answer_conditionally(request: Request, response: Response) -> Response:
    """Tell caches what an answer depends on, and give a client that has it already a 304 in its place."""
    if response.status_code == HTTP_200_OK and request.method in {"GET", "HEAD"}:
        response["Cache-Control"] = "private, no-cache"
        patch_vary_headers(response, ["Accept", "Authorization"])
        response.add_post_render_callback(partial(not_modified, request))
    return response


def not_modified(request: Request, response: Any) -> HttpResponse | None:
    """Add the ETag of what was rendered; return a 304 to whoever names it, be it weakly: a proxy may compress."""
    etag = quote_etag(hashlib.blake2b(response.content, digest_size=16).hexdigest())
    response["ETag"] = etag
    known = [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]
    if etag not in known and "*" not in known:
        return None
    headers = {name: response[name] for name in KEPT_HEADERS}
    return HttpResponseNotModified(headers={**headers, "Content-Length": str(len(response.content))})
