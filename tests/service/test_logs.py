"""The log has one line per event, with the request ID and without secrets."""

import json
import logging
import logging.config
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from psycopg.errors import DeadlockDetected, LockNotAvailable, QueryCanceled
from pytest_django import Settings

from payments.service.logs import Repetition, redacted
from tests.support.api import REQUEST_ID, Api, status_of
from tests.support.list_errors import failing_list_queries
from tests.support.log import Log, collected_log

pytestmark = pytest.mark.once

KEY = "live_0123456789abcdefghijABCDEFGHIJ0123456789"


@pytest.fixture
def log() -> Iterator[Log]:
    with collected_log() as log:
        yield log


@pytest.fixture
def access_log(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.PAYMENTS_ACCESS_LOG = True
    caplog.set_level(logging.INFO, logger="payments_site.access")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"the key {KEY} is bad", "the key live_[redacted] is bad"),
        (KEY.replace("live", "test"), "test_[redacted]"),
        ("Authorization: Bearer nonsense, then", "Authorization: Bearer [redacted], then"),
        ("'HTTP_AUTHORIZATION': 'basic bGl2ZTo='", "'HTTP_AUTHORIZATION': 'basic [redacted]'"),
        ("postgresql://payments:hunter2@db.example/payments", "postgresql://payments:[redacted]@db.example/payments"),
        ("to a.baker+x@shop.example now", "to [redacted] now"),
        ("{'password': 'hunter2', 'a': 1}", "{'password': [redacted], 'a': 1}"),
        ("Cookie: sessionid=abc; csrftoken=def", "Cookie: sessionid=[redacted]; csrftoken=[redacted]"),
        ("card 4242424242424242.", "card [redacted]."),
        ("card 4242 4242 4242 4242, 4242-4242-4242-4242", "card [redacted], [redacted]"),
        ("?card=4242%204242%204242%204242&x=4242+4242+4242+4242", "?card=[redacted]&x=[redacted]"),
        ("card4242424242424242x", "card[redacted]x"),
        (f"?key%20{KEY}&x=Bearer%20nonsense", "?key%20live_[redacted]&x=Bearer [redacted]"),
        ("?email=a.baker%40shop.example", "?email=[redacted]"),
        ("password='a b', password=\"a b\"", "password=[redacted], password=[redacted]"),
        ("postgresql://payments:hunter@2@db.example/payments", "postgresql://payments:[redacted]@db.example/payments"),
    ],
)
def test_secrets_are_redacted(text: str, expected: str) -> None:
    assert redacted(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "/v2/payments?limit=20&from=pt_03511fj4TjmIJlp64umd2s",
        "2026-11-21T20:07:32.188+00:00 127.0.0.1:8000 [f00dbabe]",
        "The database payments failed: server closed the connection unexpectedly",
        "API key 17, live_ and test_",
        "4bf92f35771234567890123456d0e473, 01234567-1234-1234-1234-123456789012",
    ],
)
def test_other_text_is_unchanged(text: str) -> None:
    assert redacted(text) == text


def test_messages_arguments_and_tracebacks_are_redacted(log: Log) -> None:
    try:
        int(KEY)
    except ValueError:
        logging.getLogger("payments").exception("%s %s 4242424242424242", "a@b.example", KEY)

    (line,) = log.lines
    assert not re.search("0123456789abcdef|4242|b.example", line)
    assert json.loads(line)["message"] == "[redacted] live_[redacted] [redacted]"
    assert json.loads(line)["traceback"].endswith("with base 10: 'live_[redacted]'")


class Clock:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


class Limited(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def limited() -> Iterator[Limited]:
    """Collect the messages of a logger whose repetitions are limited."""
    limited = Limited()
    limited.addFilter(Repetition(loggers=["limited"], clock=limited.clock))
    for name in ("limited", "other"):
        logging.getLogger(name).addHandler(limited)
    yield limited
    for name in ("limited", "other"):
        logging.getLogger(name).removeHandler(limited)


def database_error(cause: type[psycopg.Error]) -> OperationalError:
    error = OperationalError("of Django")
    error.__cause__ = cause()
    return error


def log_failure(*arguments: object, logger: str = "limited", status: int = 503, **options: Any) -> None:
    logging.getLogger(logger).error("%s failed: %s", *arguments, extra={"status_code": status}, **options)


def test_same_failure_is_one_line_a_second_with_the_number_of_further_ones(limited: Limited) -> None:
    for seconds in (0, 0, 0.5, 0.9, 1, 1.5, 2, 3):
        limited.clock.seconds = 100 + seconds
        log_failure("/path", f"at {seconds}")

    assert limited.messages == [
        "/path failed: at 0",
        "/path failed: at 1 (3 more since the last line like this)",
        "/path failed: at 2 (1 more since the last line like this)",
        "/path failed: at 3",
    ]


def test_different_failures_are_lines_of_their_own(limited: Limited) -> None:
    for cause in (QueryCanceled, LockNotAvailable, psycopg.OperationalError, QueryCanceled):
        log_failure("/path", database_error(cause))
    log_failure("/path", "with a traceback", exc_info=database_error(DeadlockDetected))
    log_failure("/path", "with another status", status=400)
    logging.getLogger("limited").error("of another line")

    assert len(limited.messages) == 3 + 3


def test_bugs_and_other_loggers_are_not_limited(limited: Limited) -> None:
    for _ in range(3):
        log_failure("/path", "a bug", status=500)
        log_failure("/path", "a refused sign-in", logger="other")

    assert limited.messages == ["/path failed: a bug", "/path failed: a refused sign-in"] * 3


def test_no_failure_is_lost_if_threads_log_at_once(limited: Limited) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: log_failure("/path", "x"), range(2000)))
    limited.clock.seconds += 1
    log_failure("/path", "x")

    assert limited.messages == ["/path failed: x", "/path failed: x (1999 more since the last line like this)"]


def test_limited_loggers_exist() -> None:
    """A renamed module would not be limited any more."""
    for name in settings.LOGGING["filters"]["repetition"]["loggers"]:
        assert name == "django.request" or import_module(name).logger.name == name


@pytest.mark.parametrize(("status", "level"), [(200, "INFO"), (302, "INFO"), (404, "WARNING")])
def test_development_server_warns_of_refused_requests_alone(log: Log, status: int, level: str) -> None:
    record = logging.LogRecord("django.server", logging.INFO, __file__, 1, "GET /", None, None)
    record.status_code = status

    log.handle(record)

    assert [event["level"] for event in log.events] == [level]


def test_line_is_one_json_object(log: Log) -> None:
    logging.getLogger("payments").warning('"two\nlines" \ud800 %s', "\u2028")

    (line,) = log.lines
    event = json.loads(line)
    assert "\n" not in line
    assert list(event) == ["time", "level", "logger", "message", "request_id"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", event["time"])
    assert (event["level"], event["logger"]) == ("WARNING", "payments")


def test_message_with_wrong_arguments_is_logged(log: Log) -> None:
    logging.getLogger("payments").warning("%d", KEY)

    assert log.events[0]["message"] == "%d ('live_[redacted]',)"


def test_bug_is_logged_once_with_traceback_and_request_id(api: Api, log: Log) -> None:
    api.client.raise_request_exception = False

    with failing_list_queries(ZeroDivisionError("division by zero")):
        response = api.get()

    (event,) = log.events
    assert (response.status_code, response["X-Request-ID"], response.json()["requestId"]) == (500, *[REQUEST_ID] * 2)
    assert (event["message"], event["request_id"]) == ("Internal Server Error: /v2/payments", REQUEST_ID)
    assert event["traceback"].endswith("ZeroDivisionError: division by zero")


def test_client_errors_are_not_logged(api: Api, log: Log) -> None:
    api.get(limit=0)
    api.get("/v2/payments/pt_unknown")
    api.send("GET", "/v2/payments", Authorization="Bearer nonsense")

    assert log.lines == []


@pytest.mark.parametrize(
    ("path", "form", "logger"),
    [
        ("/admin/payments/apikey/?digest=1", "", "django.security.DisallowedModelAdminLookup"),
        (f"/admin/payments/apikey/?{'x' * 1000}=1", "", "django.security.DisallowedModelAdminLookup"),
        ("/admin/auth/user/", "a=1&" * 1001, "django.security.TooManyFieldsSent"),
        ("/admin/auth/user/", "a" * 3_000_000, "django.security.RequestDataTooBig"),
        ("/admin/nothing/", "", None),
    ],
)
def test_refused_request_is_at_most_one_line(
    admin_client: Client, log: Log, path: str, form: str, logger: str | None
) -> None:
    media_type = "application/x-www-form-urlencoded"
    response = admin_client.generic("POST" if form else "GET", path, form, content_type=media_type)

    assert 400 <= response.status_code < 500
    assert [event["logger"] for event in log.events] == ([logger] if logger else [])
    assert {event["level"] for event in log.events} <= {"WARNING"}
    assert all(len(line) < 1000 and "traceback" not in line for line in log.lines)


@pytest.mark.parametrize("request_id", ["a", "A-b_c.7", "x" * 64])
@pytest.mark.parametrize("path", ["/v2/payments", "/healthz", "/admin/login/"])
def test_valid_request_id_is_adopted(client: Client, db: None, path: str, request_id: str) -> None:
    response = client.get(path, headers={"X-Request-ID": request_id})

    assert response["X-Request-ID"] == request_id


@pytest.mark.parametrize("request_id", ["", "x" * 65, "a b", "a\n", "<script>", "é", KEY + "/"])
def test_invalid_request_id_is_replaced(client: Client, db: None, request_id: str) -> None:
    ids = {client.get("/v2/payments", headers={"X-Request-ID": request_id})["X-Request-ID"] for _ in range(2)}

    assert len(ids) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", new_id) for new_id in ids)


def test_access_log_has_a_line_per_request(api: Api, log: Log, access_log: None) -> None:

    api.get(limit=5)

    (event,) = log.events
    digest = api.key.digest[:12]
    assert re.fullmatch(rf"GET /v2/payments 200 \d+\.\d ms key {digest}", event["message"])
    assert (event["logger"], event["request_id"]) == ("payments_site.access", REQUEST_ID)


@pytest.mark.django_db(transaction=True)
def test_access_log_names_the_user_of_a_session(admin_client: Client, log: Log, access_log: None) -> None:
    status_of("/admin/", Cookie=f"sessionid={admin_client.session.session_key}")
    status_of("/admin/", Cookie=f"sessionid={'x' * 32}", Authorization="Bearer x")

    clients = [event["message"].rpartition(" ms ")[2] for event in log.events]
    assert clients == [f"user {User.objects.get().pk}", "address 127.0.0.1"]


def test_long_path_is_shortened_in_the_access_log(api: Api, log: Log, access_log: None) -> None:
    path = f"/v2/{'x' * 1000}"

    api.get(path)

    (event,) = log.events
    assert event["message"].startswith(f"GET {path[:500]} 404 ")
