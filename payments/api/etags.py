"""Conditional requests (RFC 9110, section 13): ETag, If-None-Match and 304.

An ETag is `"STATE-CONTENT"`. STATE is a digest of the request and the revision of its payments. CONTENT is a digest of
the values that the response is built from.

If the state of a known ETag is the current one, no payment has changed, and 304 needs no page. Otherwise the page is
read: its content may still be the same, because other payments have changed. Then 304 repeats the known ETag.

PostgreSQL's `xmin` is not suitable: in a database rebuilt by the same steps, other rows have the same values.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from django.http import HttpResponseBase, HttpResponseNotModified
from django.utils.http import parse_etags
from xxhash import xxh3_128_hexdigest

import payments
from payments.api.header_fields import set_fields

ANY = "*"


def digest_of_source(directory: Path) -> str:
    """Return a digest of all Python modules below a directory."""
    return xxh3_128_hexdigest(b"".join(path.read_bytes() for path in sorted(directory.rglob("*.py"))))


# Another release may render the same payment differently, so its ETags differ.
RELEASE = digest_of_source(Path(payments.__file__).parent)

encode = msgspec.msgpack.Encoder().encode


class Content(NamedTuple):
    """The content of a response, which is not rendered yet.

    `version` has all values that the response depends on. `revision` identifies the state of the payments in the same
    snapshot; None if it is unknown.
    """

    version: tuple[Any, ...]
    revision: int | None
    build: Callable[[], HttpResponseBase]


def conditional_response(
    read: Callable[[], Content], *, request: tuple[Any, ...], revision: int | None, known: Sequence[str]
) -> HttpResponseBase:
    """Return the response with the content that `read` returns, or 304 if the client knows it by one of these ETags.

    `request` has all values that the response depends on, except for the payments. `revision` is their revision on the
    primary; None if it is unknown.
    """
    if revision is not None and ANY not in known and (etag := find_known(known, f'"{digest(request, revision)}-')):
        return with_headers(HttpResponseNotModified(), etag)
    content = read()
    state = "" if content.revision is None else digest(request, content.revision)
    ending = f'-{digest(*content.version)}"'
    etag = f'"{state}{ending}'
    if same := next((known_etag for known_etag in known if known_etag.endswith(ending) or known_etag == ANY), None):
        return with_headers(HttpResponseNotModified(), etag if same == ANY else same)
    return with_headers(content.build(), etag)


def find_known(known: Sequence[str], beginning: str) -> str | None:
    return next((etag for etag in known if etag.startswith(beginning)), None)


def can_skip_content(known: Sequence[str]) -> bool:
    """Return whether the state of a known ETag may make the content unnecessary."""
    return bool(known) and ANY not in known


def parse_known(if_none_match: str | None) -> Sequence[str]:
    """Return the ETags of the header. A proxy that compresses a response makes its ETag weak, so `W/` is removed."""
    return [] if if_none_match is None else [etag.removeprefix("W/") for etag in parse_etags(if_none_match)]


def digest(*values: Any) -> str:
    return xxh3_128_hexdigest(encode((RELEASE, values)))


def with_headers(response: HttpResponseBase, etag: str) -> HttpResponseBase:
    set_fields(response, {"Cache-Control": "private, no-cache", "Vary": "Accept, Authorization", "ETag": etag})
    return response
