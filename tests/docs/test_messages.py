"""The messages for mistakes of operators: each mistake is made, and a command prints the expected line."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.docs.mistakes import MISTAKES, Machine
from tests.support.connecting import connected_to
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.processes import ROOT
from tests.support.tools import needs_linux

pytestmark = [pytest.mark.once, needs_linux]

EXPECTED = ROOT / "tests/documents/operators_messages.txt"
MESSAGE = re.compile(r"^# (.+)\n((?:[^#\n].*\n)+)", re.MULTILINE)

# With a server. The name in the file, the URL's user and database, and the command.
MISTAKES_WITH_A_SERVER = {
    "the password is wrong": ("payments:wrong", "payments", ["migrate"]),
    "the database does not exist": ("postgres", "missing", ["migrate"]),
    "the user in DATABASE_URL lacks a privilege": ("stranger", "payments", ["list_api_keys"]),
    "the PostgreSQL server accepts no writes": ("reader", "payments", ["create_organization", "7", "--name", "Books"]),
}


def expected() -> dict[str, str]:
    """Return the message of each mistake."""
    return dict(MESSAGE.findall(EXPECTED.read_text()))


@pytest.fixture(scope="module")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("migrated") / "payments.sqlite3"
    with connected_to(f"sqlite:///{file}"):
        call_command("migrate", verbosity=0)
    return file


@pytest.fixture
def machine(tmp_path: Path, migrated_file: Path) -> Machine:
    return Machine(tmp_path, migrated_file=migrated_file)


@pytest.fixture(scope="module")
def server() -> Iterator[BreakablePostgresql]:
    """A migrated server, whose users trust each other except for one."""
    with breakable_postgresql() as server:
        server.execute("CREATE DATABASE payments")
        server.execute("CREATE ROLE payments LOGIN PASSWORD 'right'")
        server.execute("CREATE ROLE stranger LOGIN")
        server.execute("CREATE ROLE reader LOGIN SUPERUSER")
        server.execute("ALTER ROLE reader SET default_transaction_read_only = on")
        with connected_to(f"{server.url.removesuffix('postgres')}payments"):
            call_command("migrate", verbosity=0)
        rules = server.data / "pg_hba.conf"
        rules.write_text(f"host all payments 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        server.execute("SELECT pg_reload_conf()")
        yield server


@pytest.mark.processes
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_has_the_expected_message(machine: Machine, mistake: str) -> None:
    assert MISTAKES[mistake](machine) == expected()[mistake]


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.parametrize("mistake", MISTAKES_WITH_A_SERVER)
def test_mistake_with_a_server_has_the_expected_message(
    machine: Machine, server: BreakablePostgresql, mistake: str
) -> None:
    user, database, command = MISTAKES_WITH_A_SERVER[mistake]

    message = machine.manage(*command, url=f"postgresql://{user}@127.0.0.1:{server.port}/{database}")

    assert message.replace(f"port {server.port}", "port 5432") == expected()[mistake]


def test_all_expected_messages_are_tested() -> None:
    assert set(expected()) == {*MISTAKES, *MISTAKES_WITH_A_SERVER}
