"""show_version prints the versions that are known, also if the database cannot be reached."""

import platform
import sqlite3
from pathlib import Path

import django
import pytest
from django.db import connection

from payments import __version__
from tests.support.commands import manage
from tests.support.connecting import connected_to
from tests.support.migrated import empty_database
from tests.support.ports import free_port
from tests.support.sql import fetch_value

KNOWN = f"payments-site {__version__} (Django {django.get_version()}, Python {platform.python_version()}, "


def test_line_has_all_versions(tmp_path: Path) -> None:
    with empty_database(tmp_path) as url:
        with connected_to(url):
            database = (
                f"SQLite {sqlite3.sqlite_version}"
                if connection.vendor == "sqlite"
                else f"PostgreSQL {str(fetch_value('SHOW server_version')).split()[0]}"
            )

        done = manage("show_version", url=url)

    assert (done.returncode, done.stdout) == (0, f"{KNOWN}{database})\n")


@pytest.mark.once
@pytest.mark.parametrize("path", ["/nonexistent/payments.sqlite3", "/dev/null"])
def test_sqlite_has_its_version_without_a_file(path: str) -> None:
    done = manage("show_version", url=f"sqlite:///{path}")

    assert done.returncode == 0
    assert done.stdout.startswith(f"{KNOWN}SQLite 3.")


@pytest.mark.once
def test_unreachable_database_leaves_the_other_versions() -> None:
    done = manage("show_version", url=f"postgresql://payments@127.0.0.1:{free_port()}/payments")

    assert (done.returncode, done.stdout) == (1, f"{KNOWN}PostgreSQL unreachable)\n")
    assert done.stderr.startswith("CommandError: The database failed: connection failed: ")
    assert done.stderr.endswith("Check DATABASE_URL, and that the database server runs.\n")
    assert done.stderr.count("\n") == 1
