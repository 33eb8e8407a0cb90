"""Settings come from the environment. Invalid ones stop the start with one message for all."""

import os
import runpy
import secrets
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.views.debug import SafeExceptionReporterFilter
from environs import ValidationError
from pytest_django import Settings

from payments.runtime.rate_limits import RateLimit
from payments_site.environment import (
    POSTGRESQL_OPTIONS,
    base_url,
    database,
    directory,
    flag,
    hosts,
    rate,
    read_or_create_secret,
    seconds,
    secret_keys,
)
from tests.support.commands import run_command
from tests.support.processes import ROOT
from tests.support.service import SETTINGS, inherited_environment
from tests.support.sql import fetch_value

pytestmark = pytest.mark.once

PRODUCTION = {
    "DATABASE_URL": "postgresql://payments:secret@db.example/payments",
    "SECRET_KEY": "for-tests-alone-0123456789-abcdefghijklmnopqrstuvwxyz",
    "ALLOWED_HOSTS": "pay.example",
    "PUBLIC_BASE_URL": "https://pay.example",
    "TRUST_PROXY": "true",
    "HSTS_SECONDS": "31536000",
}


# The settings whose empty value is invalid.
VALID = {
    "DATABASE_REPLICA_URL": "postgresql://payments:secret@replica.example/payments",
    "REPLICA_LAG_SECONDS_MAX": "10",
    **dict.fromkeys(("DEBUG", "ACCESS_LOG", "METRICS", "TRACING"), "false"),
    "REQUEST_SECONDS_MAX": "2.5",
    "PASSWORD_LOGIN": "on",
    "SECOND_FACTOR": "off",
    "SESSION_IDLE_SECONDS": "3600",
}

OIDC = {
    "OIDC_ISSUER": "https://login.example/realms/staff",
    "OIDC_CLIENT_ID": "payments",
    "OIDC_CLIENT_SECRET": "hunter2",
    "OIDC_EMAIL_DOMAINS": "example.com",
}


def check(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "check", *arguments]
    return run_command(command, cwd=ROOT, env=inherited_environment() | environment)


WEAK = {
    "short": "hunter2",
    "of 49 characters": secrets.token_urlsafe(64)[:49],
    "of 4 different characters": "abcd" * 20,
    "of a new project": f"django-insecure-{secrets.token_urlsafe(64)}",
}


@pytest.mark.parametrize("weak", WEAK)
@pytest.mark.parametrize("name", ["SECRET_KEY", "SECRET_KEY_FALLBACKS"])
def test_weak_secret_key_stops_the_start_in_production(name: str, weak: str) -> None:
    message = error_message(PRODUCTION | {name: WEAK[weak]})

    assert message == f"Invalid settings. {name}: Must be at least 50 random characters."


def test_weak_key_among_fallbacks_stops_the_start() -> None:
    message = error_message(PRODUCTION | {"SECRET_KEY_FALLBACKS": f"{secrets.token_urlsafe(64)},hunter2"})

    assert message == "Invalid settings. SECRET_KEY_FALLBACKS: Must be at least 50 random characters."


@pytest.mark.processes
@pytest.mark.parametrize(
    "environment",
    [
        {"SECRET_KEY": secrets.token_hex(32), "SECRET_KEY_FALLBACKS": f"{secrets.token_urlsafe(64)},{'abcde' * 10}"},
        {"SECRET_KEY": "short", "SECRET_KEY_FALLBACKS": "older", "DEBUG": "true"},
    ],
)
def test_strong_secret_keys_and_any_for_development_are_accepted(environment: dict[str, str]) -> None:
    done = check(**(PRODUCTION | environment))

    assert done.returncode == 0, done.stderr


@pytest.mark.processes
def test_production_settings_pass_all_checks() -> None:
    done = check("--deploy", "--fail-level", "WARNING", **PRODUCTION)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("DEBUG", "maybe", "Must be true or false."),
        ("TRUST_PROXY", "2", "Must be true or false."),
        ("HSTS_SECONDS", "-1", "Must be a whole number of seconds from 0 to 1000000000."),
        ("HSTS_SECONDS", "a year", "Must be a whole number of seconds from 0"),
        ("RATE_LIMIT", "many", "Must be NUMBER/second, NUMBER/minute, NUMBER/hour or NUMBER/day."),
        ("RATE_LIMIT", "0/minute", "Must be NUMBER/second"),
        ("ACCESS_LOG", "perhaps", "Must be true or false."),
        ("METRICS", "some", "Must be true or false."),
        ("TRACING", "some", "Must be true or false."),
        ("RUNTIME_DIRECTORY", "var/run", "Must be an absolute path."),
        ("RUNTIME_DIRECTORY", ":/run/payments", "Must be an absolute path."),
        ("SECRET_KEY_FALLBACKS", "an-old-one,", "Must be keys, separated by commas."),
        ("ALLOWED_HOSTS", "", "Must be host names, separated by commas."),
        ("ALLOWED_HOSTS", "pay.example,,", "Must be host names, separated by commas."),
        ("PUBLIC_BASE_URL", "pay.example", "Must be http(s)://HOST[:PORT][/PATH]."),
        ("DATABASE_REPLICA_URL", "db.example/payments", "Must start with postgresql:// or sqlite:///."),
        ("DATABASE_REPLICA_URL", "sqlite:////srv/payments.sqlite3", "Must be a PostgreSQL URI, and so must"),
        ("REPLICA_LAG_SECONDS_MAX", "0", "Must be a whole number of seconds from 1 to 300."),
        ("REPLICA_LAG_SECONDS_MAX", "301", "Must be a whole number of seconds from 1 to 300."),
        ("SESSION_IDLE_SECONDS", "59", "Must be a whole number of seconds from 60 to 43200."),
        ("PORT", "0", "Must be a whole number from 1 to 65535."),
        ("PORT", "65536", "Must be a whole number from 1 to 65535."),
        ("WEB_WORKERS", "x", "Must be a whole number from 1 to 1000."),
        ("WEB_WORKERS", "1001", "Must be a whole number from 1 to 1000."),
        ("WEB_THREADS", "0", "Must be a whole number from 1 to 100."),
        ("WEB_THREADS", "101", "Must be a whole number from 1 to 100."),
        ("WEB_THREADS", "many", "Must be a whole number from 1 to 100."),
        *(
            ("REQUEST_SECONDS_MAX", text, "Must be a number of seconds from 1 to 60, such as 2.5.")
            for text in ("0.999", "60.001", "2,5", "-2", "1e1", "nan")
        ),
        ("DATABASE_URL", "mysql://localhost/x", "Must start with postgresql:// or sqlite:///."),
        ("DATABASE_URL", "postgresql://u:hunter2@h:5432/db?colour=red", "Must be postgresql://USER:PASSWORD@"),
        ("DATABASE_URL", "postgresql://u:hunter2@h", "Must contain the name of the database"),
    ],
)
def test_invalid_setting_stops_the_start(name: str, value: str, reason: str) -> None:
    message = error_message(PRODUCTION | {name: value})

    assert message.startswith(f"Invalid settings. {name}: {reason}")
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"OIDC_ISSUER": "login.example"}, "OIDC_ISSUER: Must be https://HOST[:PORT][/PATH]."),
        ({"OIDC_ISSUER": "https://"}, "OIDC_ISSUER: Must be https://HOST[:PORT][/PATH]."),
        ({"OIDC_ISSUER": "https://login.example?x=1"}, "OIDC_ISSUER: Must be https://HOST[:PORT][/PATH]."),
        ({"OIDC_ISSUER": f"https://login.example/{'x' * 200}"}, "OIDC_ISSUER: Must be https://HOST[:PORT][/PATH]."),
        ({"OIDC_ISSUER": "http://login.example"}, "OIDC_ISSUER: Must start with https://."),
        ({"OIDC_CLIENT_ID": ""}, "OIDC_CLIENT_ID: Must be set if OIDC_ISSUER is set."),
        ({"OIDC_CLIENT_SECRET": ""}, "OIDC_CLIENT_SECRET: Must be set if OIDC_ISSUER is set."),
        ({"OIDC_EMAIL_DOMAINS": ""}, "OIDC_EMAIL_DOMAINS: Must be set if OIDC_ISSUER is set."),
        ({"OIDC_EMAIL_DOMAINS": "@example.com"}, "OIDC_EMAIL_DOMAINS: Must be domains such as example.com"),
        ({"OIDC_EMAIL_DOMAINS": "example.com,"}, "OIDC_EMAIL_DOMAINS: Must be domains such as example.com"),
        ({"OIDC_REQUIRED_CLAIM": "groups"}, "OIDC_REQUIRED_CLAIM: Must be NAME=VALUE."),
        ({"SECOND_FACTOR": "on"}, "SECOND_FACTOR: Must be off, optional or required."),
        ({"PASSWORD_LOGIN": "never"}, "PASSWORD_LOGIN: Must be true or false."),
        ({"PASSWORD_LOGIN": "off", "SECOND_FACTOR": "required"}, "SECOND_FACTOR: Must be off if PASSWORD_LOGIN is off"),
        (dict.fromkeys(OIDC, "") | {"PASSWORD_LOGIN": "off"}, "PASSWORD_LOGIN: Must be on if OIDC_ISSUER is empty"),
        (dict.fromkeys(OIDC, "") | {"OIDC_NAME": "x"}, "OIDC_NAME: Must be empty if OIDC_ISSUER is empty."),
    ],
)
def test_invalid_setting_for_sign_in_stops_the_start(settings: dict[str, str], error: str) -> None:
    message = error_message(PRODUCTION | OIDC | settings)

    assert message.startswith(f"Invalid settings. {error}")
    assert "hunter2" not in message


def test_page_for_developers_hides_all_secrets_of_the_settings() -> None:
    keys = {"SECRET_KEY": "first-hunter2" * 5, "SECRET_KEY_FALLBACKS": "second-hunter2" * 5}
    urls = dict.fromkeys(("DATABASE_URL", "DATABASE_REPLICA_URL"), "postgresql://payments:hunter2@db.example/payments")
    settings = settings_of(PRODUCTION | OIDC | keys | urls)

    clean = SafeExceptionReporterFilter().cleanse_setting
    shown = {name: clean(name, value) for name, value in settings.items() if name.isupper()}
    assert "hunter2" in str(settings)
    assert "hunter2" not in str(shown)


@pytest.mark.parametrize("issuer", ["https://login.example/", "http://localhost:9400", "http://[::1]:9400/realm"])
def test_issuer_is_used_as_it_is_written(issuer: str) -> None:
    assert settings_of(PRODUCTION | OIDC | {"OIDC_ISSUER": issuer})["PAYMENTS_OIDC_ISSUER"] == issuer


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (OIDC, "OIDC_ISSUER: Must be empty, or run scripts/install --sign-in first."),
        ({"SECOND_FACTOR": "optional"}, "SECOND_FACTOR: Must be off, or run scripts/install --sign-in first."),
    ],
)
def test_missing_packages_for_sign_in_stop_the_start(
    settings: dict[str, str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    assert error_message(PRODUCTION | settings) == f"Invalid settings. {error}"


def test_django_without_a_content_security_policy_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.VERSION", (5, 2, 19, "final", 0))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    assert error_message(PRODUCTION) == "Django 5.2 needs the package django-csp. Install it, or use Django 6.1."


@pytest.mark.processes
def test_service_without_sign_in_does_not_import_its_packages() -> None:
    program = "import sys, payments_site.wsgi; print([name for name in sys.modules if name.startswith('allauth')])"

    done = run_command([sys.executable, "-c", program], cwd=ROOT, env=inherited_environment())

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "address",
    [
        "u:hun@ter2@db.example/payments",
        "u:hun/ter2@db.example/payments",
        "u:12/hunter2@db.example/payments",
        "u:hunter2@db.example:hunter2/payments",
        "u:p@one.example,hun@ter2@two.example/payments",
    ],
)
def test_password_that_is_not_percent_encoded_is_refused_and_not_repeated(address: str) -> None:
    message = error_message(PRODUCTION | {"DATABASE_URL": f"postgresql://{address}"})

    assert message == "Invalid settings. DATABASE_URL: The password must be percent-encoded: @ is %40, / is %2F."


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("DATABASE_URI", "DATABASE_URL"),
        ("DATABSE_URL", "DATABASE_URL"),
        ("ALLOWED_HOST", "ALLOWED_HOSTS"),
        ("WEB_WORKER", "WEB_WORKERS"),
        ("SECRETKEY", "SECRET_KEY"),
        ("TRUSTED_PROXY", "TRUST_PROXY"),
        ("METRIC", "METRICS"),
        ("REPLICA_LAG_SECONDS", "REPLICA_LAG_SECONDS_MAX"),
    ],
)
def test_variable_that_resembles_a_setting_is_a_warning(name: str, setting: str) -> None:
    assert warnings({name: "x"}) == [f"{name} is not a setting. Did you mean {setting}?"]


# Names that shells, systemd, containers, Kubernetes, PostgreSQL and other web applications use.
ORDINARY_NAMES = (
    *(
        "HOME",
        "HOSTNAME",
        "HOSTS",
        "PORTS",
        "PATH",
        "PWD",
        "SHELL",
        "USER",
        "LANG",
        "TERM",
        "TZ",
        "DEBUGGER",
    ),
    *("DEBUGINFOD_URLS", "XDG_RUNTIME_DIR", "SYSTEMD_EXEC_PID", "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET"),
    *("STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY", "CREDENTIALS_DIRECTORY"),
    *(
        "POSTGRES_DB",
        "POSTGRES_HOST",
        "POSTGRES_PASSWORD",
        "POSTGRES_PORT",
        "POSTGRES_USER",
        "PGHOST",
        "PGPORT",
        "PGUSER",
    ),
    *("DATABASE_HOST", "DATABASE_NAME", "DATABASE_PASSWORD", "DATABASE_PORT", "DATABASE_USER", "TEST_DATABASE_URL"),
    *("PAYMENTS_PORT", "PAYMENTS_SERVICE_HOST", "PAYMENTS_PORT_8000_TCP_ADDR", "KUBERNETES_SERVICE_HOST"),
    *("DJANGO_SETTINGS_MODULE", "DJANGO_SECRET_KEY", "PYTHONPATH", "VIRTUAL_ENV", "WEB_CONCURRENCY", "REDIS_URL"),
    *("OTEL_TRACES_EXPORTER", "SSL_CERT_FILE", "HTTP_PROXY", "DEMO_PAYMENTS", "CI", "MALLOC_ARENA_MAX", "database_url"),
)


@pytest.mark.parametrize(("processors", "threads"), [(1, 3), (2, 5), (64, 5)])
def test_default_of_threads_causes_no_warning_of_granian(
    processors: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multiprocessing.cpu_count", lambda: processors)

    assert settings_of(PRODUCTION)["PAYMENTS_WEB_THREADS"] == threads <= 2 * processors + 1


def test_empty_address_and_numbers_of_the_server_are_the_defaults() -> None:
    names = ["HOST", "PORT", "WEB_WORKERS", "WEB_THREADS"]
    defaults, settings = settings_of(PRODUCTION), settings_of(PRODUCTION | dict.fromkeys(names, ""))

    for name in ["HOST", "PORT", "WEB_WORKERS", "PAYMENTS_WEB_THREADS"]:
        assert settings[name] == defaults[name]
    assert (settings["HOST"], settings["PORT"]) == ("127.0.0.1", 8000)


def settings_of(environment: dict[str, str]) -> dict[str, Any]:
    """Return the settings in this environment."""
    with patch.dict(os.environ, environment, clear=True):
        return runpy.run_path(str(ROOT / "payments_site/settings.py"))


@pytest.mark.parametrize("name", ORDINARY_NAMES)
def test_ordinary_variable_is_no_warning(name: str) -> None:
    assert warnings({name: "x"}) == []


def test_setting_is_no_warning() -> None:
    assert warnings(dict.fromkeys(SETTINGS, "") | PRODUCTION | VALID) == []


def test_error_and_misspelt_name_of_a_setting_share_a_line() -> None:
    assert error_message({"DATABASE_URL": PRODUCTION["DATABASE_URL"], "SECRETKEY": "x"}) == (
        "Invalid settings. SECRET_KEY: Must be set if DATABASE_URL is set: at least 50 random characters."
        " SECRETKEY is not a setting. Did you mean SECRET_KEY?"
    )


def warnings(environment: dict[str, str]) -> list[str]:
    """Return the warnings of the settings in this environment."""
    result: list[str] = settings_of(PRODUCTION | environment)["PAYMENTS_SETTINGS_WARNINGS"]
    return result


def error_message(environment: dict[str, str]) -> str:
    """Return the message with which the settings refuse this environment."""
    with pytest.raises(ImproperlyConfigured) as error:
        settings_of(environment)
    return str(error.value)


@pytest.mark.processes
def test_one_line_names_all_invalid_settings() -> None:
    done = check(**(PRODUCTION | {"DEBUG": "maybe", "HSTS_SECONDS": "x", "SECRET_KEY": ""}))

    assert done.returncode == 1
    assert done.stderr == (
        "Invalid settings. DEBUG: Must be true or false."
        " HSTS_SECONDS: Must be a whole number of seconds from 0 to 1000000000."
        " SECRET_KEY: Must be set if DATABASE_URL is set: at least 50 random characters.\n"
    )


def test_default_secret_is_created_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret_key"

    first, second = read_or_create_secret(path), read_or_create_secret(path)

    assert first == second
    assert len(first) >= 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_host_names_may_have_spaces_around_commas() -> None:
    assert hosts("a.example, b.example") == ["a.example", "b.example"]


@pytest.mark.parametrize(("text", "expected"), [("", []), ("old", ["old"]), ("older, oldest", ["older", "oldest"])])
def test_earlier_secret_keys_are_separated_by_commas(text: str, expected: list[str]) -> None:
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
                "OPTIONS": {**POSTGRESQL_OPTIONS, "sslmode": "require"},
            },
        ),
        (
            "postgres://one:1,two:2/payments?target_session_attrs=read-write",
            {"HOST": "one,two", "PORT": "1,2", "OPTIONS": {**POSTGRESQL_OPTIONS, "target_session_attrs": "read-write"}},
        ),
        ("postgresql:///payments?host=/run/postgresql", {"NAME": "payments", "HOST": "/run/postgresql"}),
        ("postgresql://db/payments", {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}),
        ("sqlite:////srv/payments.sqlite3", {"NAME": "/srv/payments.sqlite3", "CONN_MAX_AGE": None}),
        ("sqlite:///payments.sqlite3", {"NAME": "payments.sqlite3"}),
    ],
)
def test_url_names_a_database(url: str, expected: dict[str, Any]) -> None:
    settings = database(url)

    assert {name: settings[name] for name in expected} == expected


@pytest.mark.parametrize("url", ["", "payments", "sqlite://", "sqlite:///", "postgresql://", "postgresql://h:1/a b"])
def test_other_url_is_refused_as_database(url: str) -> None:
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
def test_base_url_has_no_slash_at_its_end(text: str, expected: str) -> None:
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
def test_other_text_is_refused_as_base_url(text: str) -> None:
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
def test_rate_is_a_number_per_unit_of_time(text: str, expected: RateLimit | None) -> None:
    assert rate(text) == expected


@pytest.mark.parametrize(
    "text", ["1", "/minute", "0/minute", "01/minute", "-1/day", "1/week", "1 / hour", "1/day ", "\u0661/day"]
)
def test_other_text_is_refused_as_rate(text: str) -> None:
    with pytest.raises(ValidationError):
        rate(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), ("True", True), ("1", True), ("on", True), ("false", False), ("No", False)]
)
def test_flag_is_true_or_false(text: str, expected: bool) -> None:
    assert flag(text) is expected


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.5", "4", "\u0661", "9" * 5000])
def test_other_text_is_refused_as_seconds(text: str) -> None:
    assert seconds("3", minimum=1, maximum=3) == 3
    with pytest.raises(ValidationError, match="Must be a whole number of seconds from 1 to 3"):
        seconds(text, minimum=1, maximum=3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", None), ("/run/payments", Path("/run/payments")), ("/run/payments:/run/other", Path("/run/payments"))],
)
def test_directory_is_the_first_of_the_paths(text: str, expected: Path | None) -> None:
    assert directory(text) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"PAYMENTS_PUBLIC_BASE_URL": "http://pay.example", "ALLOWED_HOSTS": ["pay.example"]}, []),
        (
            {"PAYMENTS_PUBLIC_BASE_URL": "http://pay.example", "ALLOWED_HOSTS": ["other.example"]},
            ["payments_site.W001"],
        ),
        (
            {"PAYMENTS_PUBLIC_BASE_URL": "https://x.example", "ALLOWED_HOSTS": [".example"], "SERVED_OVER_TLS": True},
            ["payments_site.W002"],
        ),
    ],
)
def test_checks_warn_of_settings_that_do_not_fit(
    settings: Settings, values: dict[str, Any], expected: list[str]
) -> None:
    for name, value in values.items():
        setattr(settings, name, value)

    messages = [message.id for message in run_checks(include_deployment_checks=True)]

    assert [message for message in messages if message and message.startswith("payments_site")] == expected


def test_test_database_is_configured_as_in_production(settings: Settings, db: None) -> None:
    if connection.vendor == "sqlite":
        assert fetch_value("PRAGMA journal_mode") == "wal"
        assert fetch_value("PRAGMA synchronous") == 2
    else:
        assert fetch_value("SHOW timezone") == "UTC"
