"""How the body of a request is read: within limits of bytes and of time."""

from contextlib import suppress
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, UnreadablePostError
from rest_framework.exceptions import APIException

from payments.api.errors import RETRY_HEADERS
from payments.conf import conf
from payments.ingest.formats.sources import CHUNK_BYTES
from payments.runtime.process import process

BYTES_MAX = 2**24
RECORDS_MAX = 10_000

READ_BYTES = 2**14  # a stream waits until it has so many bytes


class UnreadableBody(APIException):
    """The body has another form than its media type says, or it cannot be decoded."""

    status_code = HTTPStatus.BAD_REQUEST


class IncompleteBody(UnreadableBody):
    """The client has disconnected."""

    default_detail = "The body is incomplete. Send it again."


class BodyTimeout(APIException):
    """The client sends the body too slowly."""

    status_code = HTTPStatus.REQUEST_TIMEOUT
    default_detail = "The body did not arrive in time. Send it again, or send fewer records at a time."
    headers = RETRY_HEADERS


class LengthRequired(APIException):
    """The server does not decode a body without a length."""

    status_code = HTTPStatus.LENGTH_REQUIRED
    default_detail = "Send Content-Length."


class BodyTooLarge(APIException):
    """The body has too many bytes or records."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_detail = (
        f"Send at most {RECORDS_MAX} records and {BYTES_MAX} bytes, both after decompression. Nothing was written."
    )


def stream_of(request: HttpRequest) -> Any:
    """Return the stream of the body. Django does not read a body in chunks, so it is the stream of the server then.

    :raises LengthRequired: the server does not decode a body in chunks
    """
    if "HTTP_TRANSFER_ENCODING" not in request.META or "wsgi.input" not in request.META:
        return request
    if not request.META.get("wsgi.input_terminated"):
        raise LengthRequired
    return request.META["wsgi.input"]


class LimitedStream:
    """The body of a request as a stream that is neither too long nor incomplete."""

    def __init__(self, request: HttpRequest) -> None:
        """Take the stream of the request.

        :raises BodyTooLarge: it is too long
        :raises LengthRequired: the server does not decode a body in chunks
        """
        self.stream = stream_of(request)
        self.rest = BYTES_MAX
        self.missing = int(request.META.get("CONTENT_LENGTH") or 0) if self.stream is request else 0
        if self.missing > self.rest:
            raise BodyTooLarge

    def read(self, size: int) -> bytes:
        """Return the next bytes; none at the end.

        It waits for a silent client. No other thread may wait in its place: Granian keeps the GIL if a response ends
        while a read waits. So a proxy must buffer bodies.

        :raises BodyTimeout: the body has taken too long
        :raises BodyTooLarge: the body is too long
        :raises IncompleteBody: the client has disconnected
        """
        if process.deadline.remaining_seconds <= 0:
            raise BodyTimeout
        try:
            data: bytes = self.stream.read(min(size, READ_BYTES))
        except (UnreadablePostError, OSError):
            raise IncompleteBody from None
        self.rest -= len(data)
        self.missing -= len(data)
        if self.rest < 0:
            raise BodyTooLarge
        if not data and self.missing > 0:
            raise IncompleteBody
        return data


def discard(request: HttpRequest) -> None:
    """Read the rest of a refused body behind a proxy, which has all of it and responds only when it has sent it.

    Without a proxy, a client may never send the rest.
    """
    if conf.TRUST_PROXY:
        with suppress(APIException):
            stream = LimitedStream(request)
            while stream.read(CHUNK_BYTES):
                pass
