"""Request bodies. The service reads a body completely before a page handles the request.

The API reads the bodies of imports alone, by itself (`payments.api.streams`).

There is no time limit: a client that sends a body slowly blocks its worker. A reverse proxy must buffer bodies.
"""

from http import HTTPStatus
from io import BytesIO
from typing import Any

from django.conf import settings
from django.utils.http import parse_header_parameters

MEDIA_TYPE_CHARACTERS_MAX = 256
LENGTH_DIGITS_MAX = 10


TEXTS = {
    HTTPStatus.BAD_REQUEST: "The request is incomplete or malformed. Go back, reload the page and send the form again.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The form is too large.",
}


class InvalidBody(Exception):
    """A request body that the service refuses with this status."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(TEXTS[status])
        self.status = status


def read_body(environ: dict[str, Any]) -> None:
    """Read the body, and put it into the WSGI environment in place of the stream.

    :raises InvalidBody: if Django cannot parse the media type, or if the body is too long or incomplete
    """
    if not is_media_type(environ.get("CONTENT_TYPE", "")):
        raise InvalidBody(HTTPStatus.BAD_REQUEST)
    if length := content_length(environ):
        try:
            body = environ["wsgi.input"].read(length)
        except OSError:  # some servers raise it if the client has disconnected; others return less of the body
            body = b""
        if len(body) < length:
            raise InvalidBody(HTTPStatus.BAD_REQUEST)
        environ["wsgi.input"] = BytesIO(body)


def is_media_type(text: str) -> bool:
    """Return whether Django can parse the text. Parsing takes longer for longer texts, so their length is limited."""
    if len(text) > MEDIA_TYPE_CHARACTERS_MAX:
        return False
    try:
        parse_header_parameters(text)
    except (LookupError, ValueError):  # LookupError: an unknown encoding
        return False
    return True


def content_length(environ: dict[str, Any]) -> int:
    """Return the length of the body. Like Django, take an invalid number as 0.

    :raises InvalidBody: if the body is too long
    """
    text = environ.get("CONTENT_LENGTH") or "0"
    digits = text if text.isascii() and text.isdecimal() else "0"
    if len(digits) > LENGTH_DIGITS_MAX or int(digits) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise InvalidBody(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return int(digits)
