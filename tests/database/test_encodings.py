"""A database whose encoding is not UTF-8 is refused in one line, and `check --deploy` names locales that matter."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from io import BytesIO, TextIOWrapper
from typing import LiteralString

import pytest
from django.test import Client
from pytest_django import Settings

from payments import checks
from tests.support.commands import manage
from tests.support.connecting import connected_to
from tests.support.lines import line
from tests.support.migrated import copied_database
from tests.support.ports import free_port
from tests.support.sql import execute

pytestmark = pytest.mark.only("postgresql")

ENCODINGS: dict[str, LiteralString] = {
    "LATIN1": "ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C'",
    "SQL_ASCII": "ENCODING SQL_ASCII LC_COLLATE 'C' LC_CTYPE 'C'",
}
STEP = "Create another: createdb --template template0 --encoding UTF8 --locale C.UTF-8 NAME"


def created_database(options: LiteralString) -> AbstractContextManager[str]:
    return copied_database([os.environ["DATABASE_URL"]], copy_of="template0", options=options)


@pytest.fixture(scope="module", params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def message(encoding: str) -> str:
    return f"The database's encoding is {encoding}, it must be UTF8. {STEP}"


@pytest.fixture(scope="module")
def url(encoding: str) -> Iterator[str]:
    with created_database(ENCODINGS[encoding]) as url:
        yield url


@pytest.mark.parametrize("command", ["migrate", "check --deploy", "check --database default"])
def test_check_refuses_another_encoding(url: str, message: str, command: str) -> None:
    done = manage(*command.split(), url=url)

    assert done.returncode == 1
    assert f"(payments.E008) {message}\n" in done.stderr


def test_service_does_not_start(url: str, message: str, settings: Settings) -> None:
    settings.PORT = free_port()

    assert manage("start", "--check", url=url).stderr == f"CommandError: {message}\n"


def test_service_is_not_ready(url: str, message: str, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with connected_to(url):
        response = client.get("/readyz")

    assert (response.status_code, response.json()) == (503, {"status": message})
    assert f"is not ready: {message}" in caplog.text


@pytest.mark.parametrize("command", [["create_organization", "8", "--name", "Caf\u20ac"], ["import_payments", "-"]])
def test_other_commands_lead_to_the_migration(url: str, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(line(description="Caf\u20ac"))))

    done = manage(*command, url=url)

    assert done.returncode == 1
    assert "Run manage.py migrate." in done.stderr
    assert done.stderr.count("\n") == 1


def test_check_names_a_locale_without_capitals() -> None:
    with created_database("LC_COLLATE 'C' LC_CTYPE 'C'") as url, connected_to(url):
        [warning] = checks.server_is_suitable()

    assert warning.msg.startswith("In the locale of the database, some letters have no capitals: sign-in by email")


def test_check_names_a_locale_that_the_machine_has_changed() -> None:
    """PostgreSQL 17 and newer have a locale with a version on every machine."""
    with created_database("LOCALE 'C.UTF-8' LOCALE_PROVIDER builtin") as url, connected_to(url):
        before = checks.server_is_suitable()
        execute("UPDATE pg_database SET datcollversion = '0' WHERE datname = current_database()")
        [warning] = checks.server_is_suitable()

    assert before == []
    assert warning.msg.startswith("The machine has another version of the database's locale: indexes may be wrong.")


def test_check_does_not_need_the_server() -> None:
    with connected_to("postgresql://payments@127.0.0.1:1/payments"):
        assert checks.server_is_suitable() == []
