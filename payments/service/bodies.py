"""What a page is sent: read whole, within a time, before anybody looks at it.

A worker answers one request at a time, and whoever sends a body slowly has it wait: the server sets no time for bodies.
So a sender that takes too long is cut off, and for a while nothing is read from there. From a proxy that is trusted
requests are expected whole. The API reads no bodies.
"""

from http import HTTPStatus
from io import BytesIO
from math import ceil
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils.http import parse_header_parameters

from payments.access.clients import client_address
from payments.runtime import rate_limits
from payments.runtime.process import process
from payments.runtime.rate_limits import Limit
from payments.service.senders import Sender

SLOW_BODIES = Limit(1, seconds=60)
MEDIA_TYPE_CHARACTERS_MAX = 256
LENGTH_DIGITS_MAX = 10


class NotReceived(Exception):
    """A body that did not come: the status says why, and after how many seconds another may."""

    def __init__(self, status: HTTPStatus, *, wait_seconds: float = 0) -> None:
        super().__init__(status.phrase)
        self.status = status
        self.wait_seconds = wait_seconds

    def response(self) -> HttpResponse:
        headers = {"Retry-After": str(ceil(self.wait_seconds))} if self.wait_seconds else {}
        return HttpResponse(self.status.phrase, status=self.status, content_type="text/plain", headers=headers)


def receive(environ: dict[str, Any]) -> None:
    """Put the whole body into a request's environment, in place of the stream.

    :raises NotReceived: where it is too long, too slow, ends too early, or is of no kind that Django can read
    """
    if not is_media_type(environ.get("CONTENT_TYPE", "")):
        raise NotReceived(HTTPStatus.BAD_REQUEST)
    text = environ.get("CONTENT_LENGTH") or "0"
    digits = text if text.isascii() and text.isdigit() else "0"  # as Django takes it
    if len(digits) > LENGTH_DIGITS_MAX or int(digits) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise NotReceived(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if length := int(digits):
        environ["wsgi.input"] = BytesIO(read(environ, length))


def is_media_type(text: str) -> bool:
    """Tell whether Django can take the text apart; the longer it is, the longer that takes."""
    if len(text) > MEDIA_TYPE_CHARACTERS_MAX:
        return False
    try:
        parse_header_parameters(text)
    except (LookupError, ValueError):  # one for an encoding that nobody knows
        return False
    return True


def read(environ: dict[str, Any], length: int) -> bytes:
    sender = f"slow body {client_address(environ)}"
    usage = rate_limits.find(sender, SLOW_BODIES)
    if usage.remaining <= 0:
        raise NotReceived(HTTPStatus.TOO_MANY_REQUESTS, wait_seconds=usage.reset_seconds)
    line = Sender(environ["REMOTE_ADDR"])
    if settings.TRUST_PROXY:
        process.deadlines.body.unregister()
    else:
        process.deadlines.body.register(line)
    with process.deadlines.body:
        try:
            body: bytes = environ["wsgi.input"].read(length)
        except OSError:  # some servers say so of a client that has gone
            body = b""
        finally:
            line.has_ended.set()
    if len(body) < length:
        rate_limits.count(sender, SLOW_BODIES)
        raise NotReceived(HTTPStatus.REQUEST_TIMEOUT)
    return body
