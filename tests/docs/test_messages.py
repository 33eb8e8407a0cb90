"""The messages in docs/operations.md: each mistake is made, and a command prints the documented line."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.support.connecting import connected_to
from tests.support.mistakes import MISTAKES, Machine
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.processes import ROOT

BLOCK = re.compile(r"^## Messages\n.*?^```\n(.*?)^```", re.DOTALL | re.MULTILINE)
MESSAGE = re.compile(r"^# (.+)\n((?:[^#\n].*\n)+)", re.MULTILINE)

# With a server. The name in the document, the URL's user and database, and the command.
MISTAKES_WITH_A_SERVER = {
    "the password is wrong": ("payments:wrong", "payments", ["migrate"]),
    "the database does not exist": ("postgres", "missing", ["migrate"]),
    "the user in DATABASE_URL lacks a privilege": ("stranger", "payments", ["list_api_keys"]),
    "the PostgreSQL server accepts no writes": ("reader", "payments", ["create_organization", "7", "--name", "Books"]),
}


def documented() -> dict[str, str]:
    """Return the message of each mistake."""
    block = BLOCK.search((ROOT / "docs/operations.md").read_text())
    assert block is not None
    return dict(MESSAGE.findall(block[1]))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


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


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_has_the_documented_message(machine: Machine, mistake: str) -> None:
    assert MISTAKES[mistake](machine) == documented()[mistake]


@pytest.mark.parametrize("mistake", MISTAKES_WITH_A_SERVER)
def test_mistake_with_a_server_has_the_documented_message(
    machine: Machine, server: BreakablePostgresql, mistake: str
) -> None:
    user, database, command = MISTAKES_WITH_A_SERVER[mistake]

    message = machine.manage(*command, DATABASE_URL=f"postgresql://{user}@127.0.0.1:{server.port}/{database}")

    assert message.replace(f"port {server.port}", "port 5432") == documented()[mistake]


def test_all_documented_messages_are_tested() -> None:
    assert set(documented()) == {*MISTAKES, *MISTAKES_WITH_A_SERVER}
