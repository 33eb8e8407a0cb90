"""What a page is sent is read whole, or refused for what is wrong with it."""

import logging
import socket
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from payments.service.bodies import NotReceived, receive
from payments.service.handler import Handler
from payments.service.senders import lines_to
from tests.support.api import REQUEST_ID

FORM = "application/x-www-form-urlencoded"


def environ(sent: bytes, *, length: str | None = None, media_type: str = FORM) -> dict[str, Any]:
    return {
        "wsgi.input": BytesIO(sent),
        "CONTENT_LENGTH": str(len(sent)) if length is None else length,
        "CONTENT_TYPE": media_type,
        "REMOTE_ADDR": "192.0.2.1",
    }


def test_a_whole_body_is_handed_on() -> None:
    request = environ(b"a=1&b=2")

    receive(request)

    assert request["wsgi.input"].read() == b"a=1&b=2"


@pytest.mark.parametrize("length", ["", "0", "-1", "x", "\u0661"])
def test_without_a_length_there_is_no_body(length: str) -> None:
    request = environ(b"", length=length)

    receive(request)

    assert request["wsgi.input"].read() == b""


@pytest.mark.parametrize(
    ("request_environ", "status"),
    [
        (environ(b"x" * 101), HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (environ(b"x", length="9" * 5000), HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (environ(b"half", length="8"), HTTPStatus.REQUEST_TIMEOUT),
        (environ(b"x", media_type="text/plain; x*=bogus''y"), HTTPStatus.BAD_REQUEST),
        (environ(b"x", media_type="text/plain; x=" + "y" * 250), HTTPStatus.BAD_REQUEST),
    ],
)
def test_another_body_is_refused(settings: Settings, request_environ: dict[str, Any], status: HTTPStatus) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100

    with pytest.raises(NotReceived) as error:
        receive(request_environ)

    assert error.value.status == status


def test_whoever_was_too_slow_is_not_waited_for_again_soon() -> None:
    statuses = []
    for sent in (environ(b"half", length="8"), environ(b"whole")):
        with pytest.raises(NotReceived) as error:
            receive(sent)
        statuses.append(error.value.status)
    receive(environ(b"whole") | {"REMOTE_ADDR": "192.0.2.2"})

    assert statuses == [HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS]


def test_a_refusal_says_why_and_is_a_line_in_the_log(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("payments_site.access").setLevel(logging.INFO)
    settings.ACCESS_LOG = True
    told: dict[str, Any] = {}
    for _ in range(2):
        request = RequestFactory().get("/admin/login/", headers={"X-Request-ID": REQUEST_ID}).environ
        (body,) = Handler()(request | environ(b"half", length="8"), lambda status, headers: told.update(headers))

    assert body == b"Too Many Requests"
    assert (told["Content-Type"], told["X-Content-Type-Options"]) == ("text/plain", "nosniff")
    assert (told["Content-Length"], told["X-Request-ID"]) == (str(len(body)), REQUEST_ID)
    assert 50 < int(told["Retry-After"]) <= 60
    lines = [record.getMessage() for record in caplog.records if record.name == "payments_site.access"]
    assert [line.rsplit(" ", 2)[0] for line in lines] == ["GET /admin/login/ 408", "GET /admin/login/ 429"]


def test_looking_for_a_senders_connections_leaves_nothing_open() -> None:
    def opened() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        before = opened()
        for _ in range(3):
            for line in lines_to("127.0.0.1"):
                line.close()

        assert opened() == before
