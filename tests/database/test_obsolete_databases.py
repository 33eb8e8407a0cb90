"""A database that an earlier development version made is recognized, and one line says what to do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from tests.support.commands import run_command
from tests.support.connecting import connected_to
from tests.support.migrated import fresh_database, name_of
from tests.support.processes import ROOT
from tests.support.service import Service
from tests.support.sql import execute

COMMANDS = (
    ".venv/bin/python manage.py migrate --verbosity 0",  # with which scripts/serve begins
    ".venv/bin/python manage.py migrate --verbosity 0 payments",
    ".venv/bin/python manage.py start --check",
    "scripts/start",
)


@pytest.fixture
def obsolete(tmp_path: Path) -> Iterator[str]:
    """The URL of a database whose last migration is one that this code does not have."""
    with fresh_database(tmp_path) as url:
        with connected_to(url):
            execute("DELETE FROM django_migrations WHERE app = 'payments'")
            for name in ("0001_initial", "0016_payment_reads"):
                MigrationRecorder(connection).record_applied("payments", name)
        yield url


def message(url: str) -> str:
    step = "Delete this file" if url.startswith("sqlite") else "Create a new database"
    return f"An earlier development version made the database {name_of(url)}. {step}, and import the payments again."


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.parametrize("command", COMMANDS)
def test_command_ends_with_the_next_step(obsolete: str, tmp_path: Path, command: str) -> None:
    service = Service(obsolete, settings={"RUNTIME_DIRECTORY": str(tmp_path / "run")})

    done = run_command(command.split(), cwd=ROOT, env=service.environment)

    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"CommandError: {message(obsolete)}\n")


def test_service_is_not_ready(obsolete: str, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with connected_to(obsolete):
        response = client.get("/readyz")

    status = "An earlier development version made the database. Create a new one, and import again."
    assert (response.status_code, response.json()) == (503, {"status": status})
    assert f"{name_of(obsolete)} is not ready: {status}" in caplog.text


def test_unknown_migration_of_another_application_is_no_reason(tmp_path: Path, client: Client) -> None:
    """Another application may be removed from INSTALLED_APPS."""
    with fresh_database(tmp_path) as url, connected_to(url):
        MigrationRecorder(connection).record_applied("removed", "0001_initial")

        assert client.get("/readyz").status_code == 200


def test_demo_begins_with_the_migration() -> None:
    """Then scripts/serve ends with the message, before anything else writes the database."""
    commands = [
        line for line in (ROOT / "scripts/serve").read_text().splitlines() if line.strip().startswith("manage ")
    ]

    assert commands[0] == COMMANDS[0].replace(".venv/bin/python manage.py", "manage")
