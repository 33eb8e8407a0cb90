"""PgBouncer with the configuration of the deployment, in front of a test server."""

import os
import re
from configparser import ConfigParser
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg

from tests.support.commands import output_of
from tests.support.ports import free_port
from tests.support.processes import ROOT, wait_until_listening
from tests.support.tools import require, unavailable
from tests.support.waiting import SECONDS_MAX

CONFIGURATION = ROOT / "deploy/pgbouncer.ini"
SERVER = "host=db.example port=5432"
PASSWORD = "for-tests-alone"  # noqa: S105  only of tests

# The first version that tracks prepared statements.
TRACKING_SINCE = (1, 21)


def require_pgbouncer() -> None:
    """Skip the test without a PgBouncer that tracks prepared statements (tests/support/tools.py)."""
    require("pgbouncer")
    if version() < TRACKING_SINCE:
        unavailable(f"pgbouncer is older than {'.'.join(map(str, TRACKING_SINCE))}.")


def version() -> tuple[int, int]:
    output = output_of(["pgbouncer", "--version"])
    match = re.match(r"PgBouncer (\d+)\.(\d+)", output)
    assert match, output
    return int(match[1]), int(match[2])


@dataclass
class Pgbouncer:
    """A pooler that a test can kill and start again at the same address."""

    directory: Path  # readable for all users
    server_port: int
    server_connections: int  # for requests
    tracks_statements: bool = True
    port: int = field(default_factory=free_port)
    process: psutil.Popen | None = None  # while it runs

    def url(self, database: str, *, user: str) -> str:
        return f"postgresql://{user}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def configure(self, *, user: str) -> None:
        """Write the deployment's configuration with the addresses of this test."""
        configuration = ConfigParser(interpolation=None, comment_prefixes=";")
        configuration.read(CONFIGURATION)
        for name, entry in configuration["databases"].items():
            assert SERVER in entry
            address = entry.replace(SERVER, f"host=127.0.0.1 port={self.server_port}")
            configuration["databases"][name] = address.replace("pool_size=20", f"pool_size={self.server_connections}")
        settings = configuration["pgbouncer"]
        settings["listen_port"] = str(self.port)
        settings["auth_file"] = str(self.directory / "userlist.txt")
        if not self.tracks_statements:
            settings["max_prepared_statements"] = "0"
        with (self.directory / "pgbouncer.ini").open("w") as file:
            configuration.write(file)
        users = (user, settings["admin_users"])
        Path(settings["auth_file"]).write_text("".join(f'"{name}" "{PASSWORD}"\n' for name in users))

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = psutil.Popen(
                ["pgbouncer", self.directory / "pgbouncer.ini"],
                user="nobody" if os.geteuid() == 0 else None,  # it refuses to run as root
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that Ctrl-C ends only the tests
            )
        wait_until_listening(self.process, self.port)

    def kill(self) -> None:
        assert self.process is not None, "the pooler is not running"
        self.process.kill()
        self.process.wait(timeout=SECONDS_MAX)
        self.process = None

    def execute(self, command: str) -> None:
        """Run a command on PgBouncer's console, which supports no parameters."""
        with psycopg.connect(self.url("pgbouncer", user="pgbouncer_admin"), autocommit=True) as console:
            console.pgconn.exec_(command.encode())

    @property
    def log(self) -> Path:
        return self.directory / "pgbouncer.log"
