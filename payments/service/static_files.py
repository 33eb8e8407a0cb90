"""Static files with a hash in their names: browsers keep them, and get them compressed.

They come directly from the installed packages, without a build step. The service writes no file: its file system may be
read-only. A worker reads and compresses a file once, when it first needs it. So the hash in its pages always fits the
content that it serves, even while an upgrade replaces files.
"""

import gzip
import hashlib
import mimetypes
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

DIGITS = 12
ACCEPTS_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")
YEAR_SECONDS = 365 * 24 * 60 * 60
FOREVER = f"public, max-age={YEAR_SECONDS}, immutable"


class StaticFile(NamedTuple):
    """A compressed file, and the hash of its content."""

    digest: str
    media_type: str
    compressed: bytes


class FileMissing(LookupError):
    """No installed package has this file."""


class HashedNames(StaticFilesStorage):
    """Adds the hash of a file to its URL, unless files can change while the service runs."""

    def url(self, name: str | None) -> str:
        if name is None or settings.WHITENOISE_AUTOREFRESH:
            return super().url(name)
        stem, dot, suffix = name.rpartition(".")
        try:
            return super().url(f"{stem}.{load(name).digest}{dot}{suffix}")
        except FileMissing:
            return super().url(name)


@cache
def load(name: str) -> StaticFile:
    """Return a file of an installed package. Only existing files are cached, so the memory is limited.

    :raises FileMissing: if it does not exist
    """
    path = finders.find(name)
    if not path or not Path(path).is_file():
        raise FileMissing(name)
    content = Path(path).read_bytes()
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return StaticFile(hashlib.sha256(content).hexdigest()[:DIGITS], media_type, compress(content))


def compress(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=6, mtime=0)


@require_safe
def hashed_file(request: HttpRequest, *, stem: str, digest: str, suffix: str) -> HttpResponse:
    """Return a file.

    During an upgrade, a page of another version can name another hash. It gets this version's file, which browsers must
    not keep under that name.
    """
    try:
        file = load(f"{stem}{suffix}")
    except FileMissing as error:
        raise Http404 from error
    headers = {"Cache-Control": FOREVER if file.digest == digest else "no-cache", "Vary": "Accept-Encoding"}
    if not ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", "")):
        return HttpResponse(gzip.decompress(file.compressed), content_type=file.media_type, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return HttpResponse(file.compressed, content_type=file.media_type, headers=headers)
