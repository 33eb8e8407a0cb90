"""Answers that a client may keep and ask about again (RFC 9110, 13): ETag, If-None-Match, 304.

An ETag names what an answer is made of, not its bytes: who has it already is told so before anything is written.
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


# Another release may write the same payment differently, so its ETags are different.
RELEASE = digest_of_source(Path(payments.__file__).parent)

encode = msgspec.msgpack.Encoder().encode


def answer_conditionally(
    whole: Callable[[], HttpResponseBase], *, made_of: tuple[Any, ...], known: str | None
) -> HttpResponseBase:
    """Return the whole answer, which is made of these values; in its place a 304, where If-None-Match names it."""
    etag = f'"{xxh3_128_hexdigest(encode((RELEASE, made_of)))}"'
    response = HttpResponseNotModified() if known is not None and names(known, etag) else whole()
    response.headers["Cache-Control"] = "private, no-cache"
    response.headers["Vary"] = "Accept, Authorization"
    response.headers["ETag"] = etag
    return response


def names(if_none_match: str, etag: str) -> bool:
    """Tell whether a client names the ETag, be it weakly: a proxy that compresses makes it weak."""
    return any(known == "*" or known.removeprefix("W/") == etag for known in parse_etags(if_none_match))
