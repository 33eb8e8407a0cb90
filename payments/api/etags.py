"""Conditional requests (RFC 9110, section 13): ETag, If-None-Match and 304.

An ETag is `"STATE-CONTENT"`. STATE is a digest of the request and the revision of its payments. CONTENT is a digest of
the response's body.

If the state of a known ETag is the current one, no payment has changed, and 304 needs no page. Otherwise the page is
read: its content may still be the same, because other payments have changed. Then 304 repeats the known ETag.

PostgreSQL's `xmin` is not suitable: in a database rebuilt by the same steps, other rows have the same values.
"""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec
from django.http import HttpResponse, HttpResponseBase, HttpResponseNotModified
from rest_framework.response import Response
from xxhash import xxh3_128_hexdigest

import payments
from payments.hal import HAL

ANY = "*"

# Each client asks again, since new payments arrive, and has responses of its own.
CACHING = {"Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}

# STATE and CONTENT of an ETag. Proxies that compress a response add a suffix such as `-gzip`, or write `W/` before it;
# others lose or double its quotation marks. Both digests must be complete.
ETAG = re.compile(r"(?<![0-9A-Za-z])([0-9a-f]{32}|)-([0-9a-f]{32})(?![0-9A-Za-z])")


# Another release may render the same payment differently, so its states differ.
SOURCES = sorted(Path(payments.__file__).parent.rglob("*.py"))
RELEASE = xxh3_128_hexdigest(b"".join(path.read_bytes() for path in SOURCES))

encode_identity = msgspec.msgpack.Encoder().encode


def conditional(get: Callable[..., Any]) -> Callable[..., HttpResponseBase]:
    """Decorate the method `get` of a `ReadView`, which returns the document: render it, and add its ETag.

    If the client knows the response, respond with 304. A page of the browsable API also depends on templates, so it has
    no ETag.
    """

    @wraps(get)
    def respond(view: Any, request: Any, **kwargs: str) -> HttpResponseBase:
        renderer: Any = request.accepted_renderer
        if renderer.media_type != HAL:
            return Response(get(view, request, **kwargs), headers=CACHING)
        path, query = request.path, request.META["QUERY_STRING"]
        identity = (view.links.parts, request.auth.access, path, query, *view.find_state(request))
        if view.known and (etag := find_current(view.known, identity, view.reader.revision)):
            return not_modified(etag)
        body = renderer.render(get(view, request, **kwargs))
        return response_to(body, identity, view.reader.content.revision, known=view.known)

    return respond


def find_current(known: Sequence[str], identity: tuple[Any, ...], revision: int | None) -> str | None:
    """Return the ETag of these that belongs to the current state. `revision` is None if it is unknown."""
    if revision is None:
        return None
    beginning = f'"{state_digest(identity, revision)}-'
    return next((etag for etag in known if etag.startswith(beginning)), None)


def response_to(
    body: bytes, identity: tuple[Any, ...], revision: int | None, *, known: Sequence[str]
) -> HttpResponseBase:
    """Return the response with a body, or 304 if the client knows it by one of these ETags.

    `identity` has all values that the response depends on, except for the payments. `revision` is theirs in the
    snapshot of the body; None if it is unknown.
    """
    ending = f'-{xxh3_128_hexdigest(body)}"'
    state = "" if revision is None else state_digest(identity, revision)
    etag = f'"{state}{ending}'
    for known_etag in known:
        if known_etag.endswith(ending) or known_etag == ANY:
            return not_modified(etag if known_etag == ANY else known_etag)
    return HttpResponse(body, headers=content_headers(etag))


def not_modified(etag: str) -> HttpResponseNotModified:
    return HttpResponseNotModified(headers=content_headers(etag))


def content_headers(etag: str) -> dict[str, str]:
    return {
        "Content-Type": HAL,  # a response without a body removes it; Django would compute another one first
        **CACHING,
        "ETag": etag,
    }


def parse_known(if_none_match: str | None) -> Sequence[str]:
    """Return the ETags of the header as the service has sent them, or `*`. A 304 has the ETag of a 200."""
    if not if_none_match:
        return ()
    if if_none_match.strip() == ANY:
        return (ANY,)
    return [f'"{state}-{content}"' for state, content in ETAG.findall(if_none_match)]


def state_digest(identity: tuple[Any, ...], revision: int) -> str:
    return xxh3_128_hexdigest(encode_identity((RELEASE, identity, revision)))
