"""The real pgbouncer, started from the deployment's own configuration in front of a server of the tests."""

import os
import re
import subprocess
from configparser import ConfigParser
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg

from tests.support.ports import free_port
from tests.support.processes import ROOT, STOP_SECONDS_MAX, wait_until_listening
from tests.support.tools import require, unavailable

CONFIGURATION = ROOT / "deploy/pgbouncer.ini"
SERVER = "host=db.example port=5432"
PASSWORD = "for-tests-alone"  # noqa: S105  of nobody's

# The first that follows what its clients prepare.
FOLLOWING_SINCE = (1, 21)


def require_pgbouncer() -> None:
    """Skip the test unless a pgbouncer is installed that follows prepared statements; in CI, fail it."""
    require("pgbouncer")
    if version() < FOLLOWING_SINCE:
        unavailable(f"pgbouncer is older than {'.'.join(map(str, FOLLOWING_SINCE))}.")


def version() -> tuple[int, int]:
    told = subprocess.run(["pgbouncer", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"PgBouncer (\d+)\.(\d+)", told)
    assert found, told
    return int(found[1]), int(found[2])


@dataclass
class Pgbouncer:
    """A pooler that a test may end and start again; it keeps its address."""

    directory: Path  # may be entered by anybody
    server_port: int
    server_connections: int  # for requests
    follows_statements: bool = True
    port: int = field(default_factory=free_port)
    process: psutil.Popen | None = None  # while it runs

    def url(self, database: str, *, user: str) -> str:
        return f"postgresql://{user}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def configure(self, *, user: str) -> None:
        """Write the deployment's configuration with the addresses of these tests."""
        configuration = ConfigParser(interpolation=None, comment_prefixes=";")
        configuration.read(CONFIGURATION)
        for name, entry in configuration["databases"].items():
            assert SERVER in entry
            address = entry.replace(SERVER, f"host=127.0.0.1 port={self.server_port}")
            configuration["databases"][name] = address.replace("pool_size=20", f"pool_size={self.server_connections}")
        settings = configuration["pgbouncer"]
        settings["listen_port"] = str(self.port)
        settings["auth_file"] = str(self.directory / "userlist.txt")
        if not self.follows_statements:
            settings["max_prepared_statements"] = "0"
        with (self.directory / "pgbouncer.ini").open("w") as file:
            configuration.write(file)
        users = (user, settings["admin_users"])
        Path(settings["auth_file"]).write_text("".join(f'"{each}" "{PASSWORD}"\n' for each in users))

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = psutil.Popen(
                ["pgbouncer", self.directory / "pgbouncer.ini"],
                user="nobody" if os.geteuid() == 0 else None,  # as root it does not run
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is meant for the tests
            )
        wait_until_listening(self.process, self.port)

    def kill(self) -> None:
        assert self.process is not None, "the pooler does not run"
        self.process.kill()
        self.process.wait(timeout=STOP_SECONDS_MAX)
        self.process = None

    def command(self, words: str) -> None:
        """Say something to its console, which knows no parameters."""
        with psycopg.connect(self.url("pgbouncer", user="pgbouncer_admin"), autocommit=True) as console:
            console.pgconn.exec_(words.encode())

    @property
    def log(self) -> Path:
        return self.directory / "pgbouncer.log"
