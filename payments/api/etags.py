"""Conditional requests (RFC 9110, section 13): ETag, If-None-Match and 304.

An ETag is `"STATE-CONTENT"`. STATE is a digest of the request and the revision of its payments. CONTENT is a digest of
the response's body.

If the state of a known ETag is the current one, no payment has changed, and 304 needs no page. Otherwise the page is
read: its content may still be the same, because other payments have changed. Then 304 repeats the known ETag.

PostgreSQL's `xmin` is not suitable: in a database rebuilt by the same steps, other rows have the same values.
"""

import re
from collections.abc import Callable, Sequence
from http.client import NOT_MODIFIED, OK
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from xxhash import xxh3_128_hexdigest

import payments
from payments.api.responses import ApiResponse
from payments.hal import HAL

ANY = "*"

# The ETags of the service. Proxies that compress a response write `W/` before them, or add a word within them.
ETAG = re.compile(r'"[0-9a-f]*-[^"]*"')


def digest_of_source(directory: Path) -> str:
    return xxh3_128_hexdigest(b"".join(path.read_bytes() for path in sorted(directory.rglob("*.py"))))


# Another release may render the same payment differently, so its states differ.
RELEASE = digest_of_source(Path(payments.__file__).parent)

encode = msgspec.msgpack.Encoder().encode


class Content(NamedTuple):
    """The body of a response, and the revision of the payments in the same snapshot. None: unknown revision."""

    body: bytes
    revision: int | None


def conditional_response(
    read: Callable[[], Content], *, request: tuple[Any, ...], revision: int | None, known: Sequence[str]
) -> ApiResponse:
    """Return the response with the content that `read` returns, or 304 if the client knows it by one of these ETags.

    `request` has all values that the response depends on, except for the payments. `revision` is their revision on the
    primary; None if it is unknown.
    """
    if revision is not None and can_skip_content(known):
        beginning = f'"{state_digest(request, revision)}-'
        for etag in known:
            if etag.startswith(beginning):
                return not_modified(etag)
    body, revision = read()
    ending = f'-{xxh3_128_hexdigest(body)}"'
    state = "" if revision is None else state_digest(request, revision)
    etag = f'"{state}{ending}'
    for known_etag in known:
        if known_etag.endswith(ending) or known_etag == ANY:
            return not_modified(etag if known_etag == ANY else known_etag)
    return ApiResponse(OK, {**caching_fields(etag), "Content-Type": HAL}, body)


def not_modified(etag: str) -> ApiResponse:
    return ApiResponse(NOT_MODIFIED, caching_fields(etag))


def caching_fields(etag: str) -> dict[str, str]:
    return {"Cache-Control": "private, no-cache", "Vary": "Accept, Authorization", "ETag": etag}


def can_skip_content(known: Sequence[str]) -> bool:
    """Return whether the state of a known ETag may make the content unnecessary."""
    return bool(known) and ANY not in known


def parse_known(if_none_match: str | None) -> Sequence[str]:
    """Return the ETags of the header that the service may have sent, or `*`."""
    if not if_none_match:
        return ()
    return (ANY,) if if_none_match.strip() == ANY else ETAG.findall(if_none_match)


def state_digest(request: tuple[Any, ...], revision: int) -> str:
    return xxh3_128_hexdigest(encode((RELEASE, request, revision)))
