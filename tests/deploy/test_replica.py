"""The two PostgreSQL servers of Compose. The tests run their scripts as the image does."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from tests.support.commands import run_command
from tests.support.ports import free_port
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql, get_server
from tests.support.processes import ROOT
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.processes, pytest.mark.extended]

SCRIPTS = ROOT / "deploy/postgresql"
PAYMENTS_PASSWORD = 'it\'s \\a "password"'  # noqa: S105
REPLICATION_PASSWORD = "another's"  # noqa: S105

# As in the image: the superuser can connect locally, other users with a password, replicas cannot connect.
ACCESS = "host all postgres 127.0.0.1/32 trust\nhost all all all scram-sha-256\n"


@pytest.fixture(scope="module")
def primary() -> Iterator[BreakablePostgresql]:
    """Return a server that the image has initialized and on which it has run primary.sh."""
    with breakable_postgresql() as server:
        access = server.data / "pg_hba.conf"
        access.write_text(ACCESS)
        run(
            server,
            "primary.sh",
            PGDATA=str(server.data),
            PAYMENTS_PASSWORD=PAYMENTS_PASSWORD,
            REPLICATION_PASSWORD=REPLICATION_PASSWORD,
        ).check_returncode()
        with psycopg.connect(server.url) as connection:
            connection.execute("SELECT pg_reload_conf()")
        yield server


def environment(server: BreakablePostgresql, **variables: str) -> dict[str, str]:
    binaries = get_server(server.data, start=False).bin_path
    address = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port)}
    return {"PATH": f"{binaries}:{os.environ['PATH']}", **address, **variables}


def run(server: BreakablePostgresql, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_command([SCRIPTS / script], env=environment(server, **variables))


def connect(port: int, *, password: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host="127.0.0.1", port=port, dbname="payments", user="payments", password=password, autocommit=True
    )


def accepts_connections(server: psutil.Popen, port: int) -> bool:
    assert server.poll() is None, server.returncode
    try:
        connect(port, password=PAYMENTS_PASSWORD).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def replica(primary: BreakablePostgresql, data: Path, **variables: str) -> Iterator[int]:
    """Start a replica with replica.sh. Yield its port."""
    port = free_port()
    options = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-p", str(port))
    server = psutil.Popen(
        [SCRIPTS / "replica.sh", "postgres", "-D", data, *options],
        env=environment(primary, PGDATA=str(data), **variables),
        user=get_server(primary.data, start=False).system_user,
        cwd="/",
        start_new_session=True,
    )
    try:
        wait_until(lambda: accepts_connections(server, port))
        yield port
    finally:
        with suppress(psutil.NoSuchProcess):
            server.terminate()
        server.wait(timeout=SECONDS_MAX)


def test_replica_continues_after_a_restart(primary: BreakablePostgresql) -> None:
    data = make_directory(primary) / "data"
    rows: list[list[int]] = []

    with connect(primary.port, password=PAYMENTS_PASSWORD) as writer:
        writer.execute("CREATE TABLE numbers (number integer)")
        with replica(primary, data, PGPASSWORD=REPLICATION_PASSWORD) as port:
            writer.execute("INSERT INTO numbers VALUES (1)")
            rows.append(read_numbers(port, count=1))
        writer.execute("INSERT INTO numbers VALUES (2)")
        with replica(primary, data) as port:  # without PGPASSWORD: it has saved the password
            rows.append(read_numbers(port, count=2))
        slots = writer.execute("SELECT slot_name, slot_type FROM pg_replication_slots").fetchall()

    assert rows == [[1], [1, 2]]
    assert slots == [("replica", "physical")]


def make_directory(primary: BreakablePostgresql) -> Path:
    directory = primary.data.parent / "replica"
    directory.mkdir()
    if user := get_server(primary.data, start=False).system_user:
        shutil.chown(directory, user)
    return directory


def read_numbers(port: int, *, count: int) -> list[int]:
    """Return the rows of a replica as soon as it has this many of them."""
    with connect(port, password=PAYMENTS_PASSWORD) as reader:
        assert reader.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)

        def read() -> list[int]:
            return [number for (number,) in reader.execute("SELECT number FROM numbers ORDER BY number").fetchall()]

        wait_until(lambda: len(read()) >= count)
        return read()


def test_failed_copy_leaves_no_data_directory(primary: BreakablePostgresql, tmp_path: Path) -> None:
    done = run(primary, "replica.sh", PGDATA=str(tmp_path / "data"), PGPASSWORD="wrong")

    assert done.returncode != 0
    assert "password" in done.stderr
    assert not (tmp_path / "data").exists()


def test_user_of_the_service_has_no_administrative_rights(primary: BreakablePostgresql) -> None:
    with connect(primary.port, password=PAYMENTS_PASSWORD) as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles WHERE rolname = current_user"
        ).fetchone()

    assert rights == (False, False, False, False)
