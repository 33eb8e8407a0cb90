"""Conditional requests (RFC 9110, section 13): ETag, If-None-Match and 304.

An ETag is a digest of the values that a response is built from, not of its bytes. Therefore a 304 costs no rendering.
PostgreSQL's `xmin` is not suitable: in a database rebuilt by the same steps, other rows have the same values.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from django.http import HttpResponseBase, HttpResponseNotModified
from django.utils.http import parse_etags
from xxhash import xxh3_128_hexdigest

import payments


def digest_of_source(directory: Path) -> str:
    """Return a digest of all Python modules below a directory."""
    return xxh3_128_hexdigest(b"".join(path.read_bytes() for path in sorted(directory.rglob("*.py"))))


# Another release may render the same payment differently, so its ETags differ.
RELEASE = digest_of_source(Path(payments.__file__).parent)

encode = msgspec.msgpack.Encoder().encode


def conditional_response(
    build: Callable[[], HttpResponseBase], *, version: tuple[Any, ...], if_none_match: str | None
) -> HttpResponseBase:
    """Return the response that `build` returns, or 304 if If-None-Match names its ETag.

    `version` has all values that the response depends on.
    """
    etag = f'"{xxh3_128_hexdigest(encode((RELEASE, version)))}"'
    is_known = if_none_match is not None and matches(if_none_match, etag)
    response = HttpResponseNotModified() if is_known else build()
    response.headers["Cache-Control"] = "private, no-cache"
    response.headers["Vary"] = "Accept, Authorization"
    response.headers["ETag"] = etag
    return response


def matches(if_none_match: str, etag: str) -> bool:
    """Return whether the header names the ETag. A proxy that compresses a response makes its ETag weak."""
    return any(known == "*" or known.removeprefix("W/") == etag for known in parse_etags(if_none_match))
