"""Compose's two servers of PostgreSQL: the scripts that make them, run as the image runs them."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from tests.support.ports import free_port
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql, get_server
from tests.support.processes import ROOT, START_SECONDS_MAX, STOP_SECONDS_MAX

SCRIPTS = ROOT / "deploy/postgresql"
PAYMENTS_PASSWORD = 'it\'s \\a "password"'  # noqa: S105
REPLICATION_PASSWORD = "another's"  # noqa: S105

# As the image has it: the superuser gets in here, everybody else by password, a replica not at all.
ACCESS = "host all postgres 127.0.0.1/32 trust\nhost all all all scram-sha-256\n"


@pytest.fixture(scope="module")
def primary() -> Iterator[BreakablePostgresql]:
    """A server as the image has made it when it runs primary.sh, and has run it."""
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
    return subprocess.run(
        [SCRIPTS / script], env=environment(server, **variables), capture_output=True, text=True, check=False
    )


def connect(port: int, *, password: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host="127.0.0.1", port=port, dbname="payments", user="payments", password=password, autocommit=True
    )


@contextmanager
def replica(primary: BreakablePostgresql, data: Path, **variables: str) -> Iterator[int]:
    """Give the port of a replica, begun by replica.sh."""
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
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            assert server.poll() is None, server.returncode
            try:
                connect(port, password=PAYMENTS_PASSWORD).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            else:
                break
        yield port
    finally:
        with suppress(psutil.NoSuchProcess):
            server.terminate()
        server.wait(timeout=STOP_SECONDS_MAX)


def test_a_replica_follows_and_goes_on_from_where_it_was(primary: BreakablePostgresql) -> None:
    data = directory_of_its_own(primary) / "data"
    seen: list[list[int]] = []

    with connect(primary.port, password=PAYMENTS_PASSWORD) as writer:
        writer.execute("CREATE TABLE numbers (number integer)")
        with replica(primary, data, PGPASSWORD=REPLICATION_PASSWORD) as port:
            writer.execute("INSERT INTO numbers VALUES (1)")
            seen.append(numbers_when(port, count=1))
        writer.execute("INSERT INTO numbers VALUES (2)")
        with replica(primary, data) as port:  # it needs no password any more: it has its own
            seen.append(numbers_when(port, count=2))
        slots = writer.execute("SELECT slot_name, slot_type FROM pg_replication_slots").fetchall()

    assert seen == [[1], [1, 2]]
    assert slots == [("replica", "physical")]


def directory_of_its_own(primary: BreakablePostgresql) -> Path:
    directory = primary.data.parent / "replica"
    directory.mkdir()
    if user := get_server(primary.data, start=False).system_user:
        shutil.chown(directory, user)
    return directory


def numbers_when(port: int, *, count: int) -> list[int]:
    """Return what a replica holds as soon as that is so many rows."""
    deadline = time.monotonic() + START_SECONDS_MAX
    with connect(port, password=PAYMENTS_PASSWORD) as reader:
        assert reader.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)
        while len(rows := reader.execute("SELECT number FROM numbers ORDER BY number").fetchall()) < count:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    return [number for (number,) in rows]


def test_a_copy_that_fails_leaves_nothing_that_is_taken_for_one(primary: BreakablePostgresql, tmp_path: Path) -> None:
    done = run(primary, "replica.sh", PGDATA=str(tmp_path / "data"), PGPASSWORD="none of it")

    assert done.returncode != 0
    assert "password" in done.stderr
    assert not (tmp_path / "data").exists()


def test_the_services_user_is_no_superuser_and_replicates_nothing(primary: BreakablePostgresql) -> None:
    with connect(primary.port, password=PAYMENTS_PASSWORD) as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles WHERE rolname = current_user"
        ).fetchone()

    assert rights == (False, False, False, False)
