"""Request bodies are read completely, or refused with a status that says why."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from io import BytesIO
from typing import Any

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from payments.service.bodies import InvalidBody, read_body
from tests.support.api import REQUEST_ID, wsgi_application

pytestmark = pytest.mark.once

FORM = "application/x-www-form-urlencoded"


class Disconnected(BytesIO):
    """The stream of a client that has disconnected, as some servers provide it."""

    def read(self, _size: int | None = -1) -> bytes:
        raise ConnectionResetError


def environ(
    sent: bytes, *, length: str | None = None, media_type: str = FORM, stream: Callable[[bytes], BytesIO] = BytesIO
) -> dict[str, Any]:
    return {
        "wsgi.input": stream(sent),
        "CONTENT_LENGTH": str(len(sent)) if length is None else length,
        "CONTENT_TYPE": media_type,
    }


def test_complete_body_replaces_the_stream() -> None:
    request = environ(b"a=1&b=2")
    stream = request["wsgi.input"]

    read_body(request)

    assert stream.read() == b""
    assert request["wsgi.input"].read() == b"a=1&b=2"


def test_body_ends_at_its_length() -> None:
    request = environ(b"a=1&b=2", length="3")

    read_body(request)

    assert request["wsgi.input"].read() == b"a=1"


def test_longest_body_and_media_type_are_accepted(settings: Settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    request = environ(b"x" * 100, media_type="text/plain; x=".ljust(256, "y"))

    read_body(request)

    assert request["wsgi.input"].read() == b"x" * 100


@pytest.mark.parametrize("length", ["", "0", "-1", "x", "\u0661"])
def test_request_without_a_length_has_no_body(length: str) -> None:
    request = environ(b"", length=length)

    read_body(request)

    assert request["wsgi.input"].read() == b""


@pytest.mark.parametrize(
    ("request_environ", "status"),
    [
        (environ(b"x" * 101), HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (environ(b"x", length="9" * 5000), HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (environ(b"half", length="8"), HTTPStatus.BAD_REQUEST),
        (environ(b"half", length="8", stream=Disconnected), HTTPStatus.BAD_REQUEST),
        (environ(b"x", media_type="text/plain; x*=bogus''y"), HTTPStatus.BAD_REQUEST),
        (environ(b"x", media_type="text/plain; x=".ljust(257, "y")), HTTPStatus.BAD_REQUEST),
    ],
)
def test_invalid_body_is_refused(settings: Settings, request_environ: dict[str, Any], status: HTTPStatus) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100

    with pytest.raises(InvalidBody) as error:
        read_body(request_environ)

    assert error.value.status == status


def test_refusal_says_why_and_is_logged(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="payments_site.access")
    settings.PAYMENTS_ACCESS_LOG = True
    headers: dict[str, Any] = {}
    request = RequestFactory().get("/admin/login/", headers={"X-Request-ID": REQUEST_ID}).environ

    (body,) = wsgi_application()(request | environ(b"half", length="8"), lambda _status, fields: headers.update(fields))

    assert body.startswith(b"The request is incomplete or malformed.")
    assert (headers["Content-Type"], headers["X-Content-Type-Options"]) == ("text/plain", "nosniff")
    assert (headers["Content-Length"], headers["X-Request-ID"]) == (str(len(body)), REQUEST_ID)
    lines = [record.getMessage() for record in caplog.records if record.name == "payments_site.access"]
    assert [(line.split(" ")[:3], line.rpartition(" ms ")[2]) for line in lines] == [
        (["GET", "/admin/login/", "400"], "address 127.0.0.1")
    ]


@pytest.mark.django_db
def test_body_of_a_request_for_a_static_file_is_not_read() -> None:
    """Static files have no share of the threads, so a client that sends bodies slowly could occupy all threads."""
    statuses: list[str] = []
    stream = BytesIO(b"a=1&b=2")
    request = RequestFactory().post("/static/docs/icon.svg").environ

    wsgi_application()(
        request | environ(b"a=1&b=2") | {"wsgi.input": stream}, lambda status, _fields: statuses.append(status)
    )

    assert stream.tell() == 0
    assert statuses[0].split()[0] in {"403", "404", "405"}
