"""manage.py: an operator's mistake ends in one line, and --traceback shows everything."""

import os
import subprocess
import sys
from io import TextIOWrapper
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from pytest_django import Settings

from tests.support.commands import manage
from tests.support.migrated import fresh_database
from tests.support.ports import free_port
from tests.support.processes import ROOT
from tests.support.service import inherited_environment
from tests.support.tools import needs_linux

pytestmark = pytest.mark.once

# No server listens on this port.
UNREACHABLE = "postgresql://payments:hunter2@127.0.0.1:1/payments"
SIGNING_KEY = "for-tests-alone-0123456789-abcdefghijklmnopqrstuvwxyz"

COMMANDS = (
    ["migrate"],
    ["migrate", "--check"],
    ["showmigrations"],
    ["createsuperuser", "--noinput", "--username", "a", "--email", "a@example.com"],
    ["changepassword", "a"],
    ["list_api_keys"],
    ["create_organization", "7", "--name", "Books"],
    ["import_payments", os.devnull],
    ["export_payments"],
)


def start_manage(*arguments: str, stdout: Any = subprocess.PIPE, **environment: str) -> CompletedProcess[str]:
    """Run manage.py in a process of its own."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment_of(**environment),
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def environment_of(**settings: str) -> dict[str, str]:
    return inherited_environment() | {"SECRET_KEY": SIGNING_KEY} | settings


def assert_outage_in_one_line(done: CompletedProcess[str]) -> None:
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("CommandError: The database failed")
    assert "Check DATABASE_URL, and that the database server runs.\n" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_command_without_a_database_ends_in_one_line(command: list[str]) -> None:
    assert_outage_in_one_line(manage(*command, url=UNREACHABLE))


@pytest.mark.processes
def test_development_server_without_a_database_ends_in_one_line() -> None:
    assert_outage_in_one_line(start_manage("runserver", DATABASE_URL=UNREACHABLE, DEBUG="true"))


@pytest.mark.parametrize("command", [["migrate"], ["createsuperuser"], ["runserver", "--noreload"], ["list_api_keys"]])
def test_traceback_option_shows_everything(command: list[str]) -> None:
    done = manage(*command, "--traceback", url=UNREACHABLE)

    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert "psycopg.OperationalError" in done.stderr


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.parametrize("command", ["check", "runserver"])
def test_traceback_option_shows_where_a_setting_is_invalid(command: str) -> None:
    usual, full = start_manage(command, DEBUG="maybe"), start_manage(command, "--traceback", DEBUG="maybe")

    assert usual.stderr == "Invalid settings. DEBUG: Must be true or false.\n"
    assert full.stderr.startswith("Traceback (most recent call last):\n")
    assert (usual.returncode, full.returncode) == (1, 1)


@pytest.mark.processes
def test_misspelt_setting_is_a_warning_and_the_command_goes_on(tmp_path: Path) -> None:
    done = start_manage(
        "check", DATABASE_URL=f"sqlite:///{tmp_path}/a.sqlite3", DATABASE_URI="sqlite:///b", WEB_WORKER="2"
    )

    assert done.returncode == 0
    assert done.stderr == (
        "Warning: DATABASE_URI is not a setting. Did you mean DATABASE_URL?\n"
        "Warning: WEB_WORKER is not a setting. Did you mean WEB_WORKERS?\n"
    )


@pytest.mark.parametrize("option", [["--verbosity", "0"], ["--verbosity=0"], ["-v0"]], ids=" ".join)
def test_verbosity_0_hides_warnings(option: list[str], settings: Settings) -> None:
    settings.PAYMENTS_SETTINGS_WARNINGS = ["WEB_WORKER is not a setting."]

    usual, silent = manage("check", url="sqlite:///:memory:"), manage("check", *option, url="sqlite:///:memory:")

    assert (usual.returncode, usual.stderr) == (0, "Warning: WEB_WORKER is not a setting.\n")
    assert (silent.returncode, silent.stderr) == (0, "")


@pytest.mark.extended
@pytest.mark.processes
def test_development_server_prints_a_warning_once(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "manage.py", "runserver", f"127.0.0.1:{free_port()}"],
        cwd=ROOT,
        env=environment_of(
            DATABASE_URL=f"sqlite:///{tmp_path}/a.sqlite3", DEBUG="true", WEB_WORKER="2", PYTHONUNBUFFERED="1"
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout
        has_started = any("development server at" in text for text in server.stdout)
        server.terminate()  # after a kill, the process that serves would go on
        _, messages = server.communicate()

    assert has_started
    assert messages.count("Did you mean WEB_WORKERS?") == 1


@needs_linux
@pytest.mark.parametrize("command", ["check", "list_api_keys", "migrate"])
@pytest.mark.parametrize("is_buffered", [True, False], ids=["buffered", "unbuffered"])
def test_full_disk_of_the_output_ends_in_one_line(command: str, is_buffered: bool, tmp_path: Path) -> None:
    with (
        fresh_database(tmp_path) as url,
        Path("/dev/full").open("wb", buffering=-1 if is_buffered else 0) as full,
        TextIOWrapper(full, write_through=not is_buffered) as stdout,
    ):
        done = manage(command, url=url, stdout=stdout)

    assert (done.returncode, done.stderr) == (1, "CommandError: stdout: No space left on device. Free disk space.\n")


@pytest.mark.processes
def test_reader_that_has_ended_ends_a_command_silently() -> None:
    reader, writer = os.pipe()
    os.close(reader)

    done = start_manage("help", stdout=writer)

    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.processes
def test_other_settings_can_be_named_by_an_option(tmp_path: Path) -> None:
    (tmp_path / "other_settings.py").write_text("SECRET_KEY = 'x'\nPAYMENTS_SETTINGS_WARNINGS = ['from the option']\n")

    done = start_manage("check", "--settings", "other_settings", f"--pythonpath={tmp_path}", DEBUG="maybe")

    assert (done.returncode, done.stderr) == (0, "Warning: from the option\n")


@pytest.mark.parametrize("option", ["-v", "--settings", "--pythonpath"])
def test_option_without_its_value_ends_in_the_usage(option: str) -> None:
    done = manage("list_api_keys", option, url="sqlite:///:memory:")

    assert done.returncode == 2
    assert done.stderr.startswith("usage: manage.py list_api_keys")
    assert done.stderr.endswith(": expected one argument\n")


def test_argument_that_is_not_utf_8_ends_in_one_line(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url:
        done = manage("create_organization", "3", "--name", "\udcff", url=url)

    assert (done.returncode, done.stderr) == (1, "CommandError: An argument is not UTF-8.\n")


@pytest.mark.processes
def test_unknown_module_is_escaped() -> None:
    done = start_manage("check", "--settings", "a\x1b\n\u202e")

    assert done.stderr.startswith(r"Python cannot find the module a\x1b\n\u202e. Run")


@pytest.mark.processes
def test_help_needs_no_valid_settings() -> None:
    done = start_manage("help", DEBUG="maybe")

    assert done.returncode == 0
    assert "migrate" in done.stdout
