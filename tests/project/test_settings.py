"""Settings come from the environment; a wrong one stops the start and is named."""

import os
import runpy
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from environs import ValidationError
from pytest_django import Settings

from payments.runtime.rate_limits import RateLimit
from payments_site.environment import BOUND, base_url, database, directory, hosts, kept_secret, rate, secret_keys
from tests.support.processes import ROOT
from tests.support.service import SETTINGS

PRODUCTION = {
    "DATABASE_URL": "postgresql://payments:secret@db.example/payments",
    "SECRET_KEY": "for-tests-alone-0123456789-abcdefghijklmnopqrstuvwxyz",
    "ALLOWED_HOSTS": "pay.example",
    "PUBLIC_BASE_URL": "https://pay.example",
    "TRUST_PROXY": "true",
    "HSTS_SECONDS": "31536000",
}


def check(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        [sys.executable, "manage.py", "check", *arguments],
        cwd=ROOT,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_readmes_production_settings_are_clean() -> None:
    done = check("--deploy", "--fail-level", "WARNING", **PRODUCTION)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("DEBUG", "maybe", "Not a valid boolean."),
        ("TRUST_PROXY", "2", "Not a valid boolean."),
        ("HSTS_SECONDS", "-1", "Must be greater than or equal to 0."),
        ("HSTS_SECONDS", "a year", "Not a valid integer."),
        ("RATE_LIMIT", "many", "Must be NUMBER/second, NUMBER/minute, NUMBER/hour or NUMBER/day."),
        ("BAD_KEY_LIMIT", "0/minute", "Must be NUMBER/second"),
        ("ACCESS_LOG", "perhaps", "Not a valid boolean."),
        ("METRICS", "some", "Not a valid boolean."),
        ("TRACING", "some", "Not a valid boolean."),
        ("RUNTIME_DIRECTORY", "var/run", "Must be an absolute path."),
        ("RUNTIME_DIRECTORY", ":/run/payments", "Must be an absolute path."),
        ("SECRET_KEY_FALLBACKS", "an-old-one,", "Must be keys, separated by commas."),
        ("ALLOWED_HOSTS", "", "Must be host names, separated by commas."),
        ("ALLOWED_HOSTS", "pay.example,,", "Must be host names, separated by commas."),
        ("PUBLIC_BASE_URL", "pay.example", "Must be http(s)://HOST[:PORT][/PATH]."),
        ("DATABASE_REPLICA_URL", "db.example/payments", "Must begin with postgresql:// or sqlite:///."),
        ("DATABASE_REPLICA_URL", "sqlite:////srv/payments.sqlite3", "DATABASE_REPLICA_URL needs PostgreSQL"),
        ("REPLICA_LAG_SECONDS_MAX", "0", "Must be greater than or equal to 1 and less than or equal to 300."),
        ("REPLICA_LAG_SECONDS_MAX", "a while", "Not a valid integer."),
        ("DATABASE_URL", "mysql://localhost/x", "Must begin with postgresql:// or sqlite:///."),
        ("DATABASE_URL", "postgresql://u:hunter2@h:5432/db?colour=red", "Not a PostgreSQL connection URI"),
        ("DATABASE_URL", "postgresql://u:hunter2@h", "Names no database."),
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named(name: str, value: str, reason: str) -> None:
    refusal = refused(PRODUCTION | {name: value})

    assert name in refusal
    assert reason in refusal
    assert "hunter2" not in refusal


def refused(environment: dict[str, str]) -> str:
    """Run the settings with this environment, and return why they are refused."""
    with patch.dict(os.environ, environment, clear=True), pytest.raises(ImproperlyConfigured) as error:
        runpy.run_path(str(ROOT / "payments_site/settings.py"))
    return str(error.value)


def test_a_refusal_is_the_last_line_of_a_command_that_fails() -> None:
    done = check(**(PRODUCTION | {"HSTS_SECONDS": "-1"}))

    last_line = done.stderr.strip().splitlines()[-1]
    assert done.returncode != 0
    assert "HSTS_SECONDS" in last_line
    assert "Must be greater than or equal to 0." in last_line


def test_all_wrong_settings_are_named_at_once() -> None:
    refusal = refused(PRODUCTION | {"DEBUG": "maybe", "HSTS_SECONDS": "x"})

    assert "DEBUG" in refusal
    assert "HSTS_SECONDS" in refusal


def test_a_secret_key_must_be_given_with_a_database() -> None:
    refusal = refused({name: value for name, value in PRODUCTION.items() if name != "SECRET_KEY"})

    assert "SECRET_KEY must be set" in refusal


def test_the_embedded_default_makes_a_secret_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret_key"

    first, second = kept_secret(path), kept_secret(path)

    assert first == second
    assert len(first) >= 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_host_names_may_have_spaces_around_their_commas() -> None:
    assert hosts("a.example, b.example") == ["a.example", "b.example"]


@pytest.mark.parametrize(("text", "expected"), [("", []), ("old", ["old"]), ("older, oldest", ["older", "oldest"])])
def test_secret_keys_of_before_are_separated_by_commas(text: str, expected: list[str]) -> None:
    assert secret_keys(text) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql://user:pa%20ss@db.example:5433/payments?sslmode=require",
            {
                "NAME": "payments",
                "USER": "user",
                "PASSWORD": "pa ss",
                "HOST": "db.example",
                "PORT": "5433",
                "OPTIONS": {**BOUND, "sslmode": "require"},
            },
        ),
        (
            "postgres://one:1,two:2/payments?target_session_attrs=read-write",
            {"HOST": "one,two", "PORT": "1,2", "OPTIONS": {**BOUND, "target_session_attrs": "read-write"}},
        ),
        ("postgresql:///payments?host=/run/postgresql", {"NAME": "payments", "HOST": "/run/postgresql"}),
        ("postgresql://db/payments", {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}),
        ("sqlite:////srv/payments.sqlite3", {"NAME": "/srv/payments.sqlite3", "CONN_MAX_AGE": None}),
        ("sqlite:///payments.sqlite3", {"NAME": "payments.sqlite3"}),
    ],
)
def test_a_database_is_named_by_a_url(url: str, expected: dict[str, Any]) -> None:
    found = database(url)

    assert found.items() >= expected.items()


@pytest.mark.parametrize("url", ["", "payments", "sqlite://", "sqlite:///", "postgresql://", "postgresql://h:1/a b"])
def test_another_url_names_no_database(url: str) -> None:
    with pytest.raises(ValidationError):
        database(url)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("https://pay.example", "https://pay.example"),
        ("https://pay.example/", "https://pay.example"),
        ("HTTPS://Pay.example", "https://Pay.example"),
        ("http://127.0.0.1:8000/payments/", "http://127.0.0.1:8000/payments"),
    ],
)
def test_a_base_url_has_no_slash_at_its_end(text: str, expected: str) -> None:
    assert base_url(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "pay.example",
        "ftp://x",
        "https://",
        "https://x?y",
        "https://x#y",
        "https://u@x",
        "https://x:y",
        "https://x:0",
        "https://x /",
    ],
)
def test_another_text_is_no_base_url(text: str) -> None:
    with pytest.raises(ValidationError):
        base_url(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("1/second", RateLimit(1, seconds=1)),
        ("600/minute", RateLimit(600, seconds=60)),
        ("5/hour", RateLimit(5, seconds=3600)),
        ("999999999/day", RateLimit(999_999_999, seconds=86_400)),
    ],
)
def test_a_rate_is_a_number_and_a_time(text: str, expected: RateLimit | None) -> None:
    assert rate(text) == expected


@pytest.mark.parametrize(
    "text", ["1", "/minute", "0/minute", "01/minute", "-1/day", "1/week", "1 / hour", "1/day ", "\u0661/day"]
)
def test_another_text_is_no_rate(text: str) -> None:
    with pytest.raises(ValidationError):
        rate(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", None), ("/run/payments", Path("/run/payments")), ("/run/payments:/run/other", Path("/run/payments"))],
)
def test_directory_is_the_first_of_the_paths(text: str, expected: Path | None) -> None:
    assert directory(text) == expected


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, []),
        ({"PUBLIC_BASE_URL": "http://pay.example", "ALLOWED_HOSTS": ["pay.example"]}, []),
        ({"PUBLIC_BASE_URL": "http://pay.example", "ALLOWED_HOSTS": ["other.example"]}, ["payments_site.W001"]),
        (
            {"PUBLIC_BASE_URL": "https://pay.example", "ALLOWED_HOSTS": [".example"], "SERVED_OVER_TLS": True},
            ["payments_site.W002"],
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_warned_of(
    settings: Settings, values: dict[str, Any], found: list[str]
) -> None:
    for name, value in values.items():
        setattr(settings, name, value)

    messages = [message.id for message in run_checks(include_deployment_checks=True)]

    assert [message for message in messages if message and message.startswith("payments_site")] == found


def test_a_database_of_the_tests_is_as_in_production(settings: Settings, db: None) -> None:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA journal_mode")
            assert cursor.fetchone() == ("wal",)
            cursor.execute("PRAGMA synchronous")
            assert cursor.fetchone() == (2,)
        else:
            cursor.execute("SHOW timezone")
            assert cursor.fetchone() == ("UTC",)
