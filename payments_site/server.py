"""The server for production: Granian replaces this process."""

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

PACKAGE = Path(__file__).resolve().parent

# A thread that waits for the database leaves the processor to the others. An idle thread ends as late as possible,
# because its database connection ends with it.
OPTIONS = (
    *("--interface", "wsgi", "--no-ws", "--http", "1", "--log-config", str(PACKAGE / "logging.json")),
    *("--blocking-threads-idle-timeout", "600", "--backpressure", "8192", "--http1-header-read-timeout", "10000"),
    *("--respawn-failed-workers", "--workers-kill-timeout", "5"),
)


def serve(host: str, *, port: int, workers: int, threads: int) -> NoReturn:
    """Replace this process by Granian. It imports the application from the folder of this package."""
    raise_limit_of_open_files()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would contain keys and SECRET_KEY
    environment = os.environ | {
        "WEB_WORKERS": str(workers),
        "WEB_THREADS": str(threads),
        # With one memory arena for all threads, a thread reuses the memory that another has just released.
        "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX") or "1",
        # The memory of a long body is free for other processes after its import. The C library would keep some of it.
        "MALLOC_MMAP_THRESHOLD_": os.environ.get("MALLOC_MMAP_THRESHOLD_") or str(2**20),
    }
    numbers = ("--port", str(port), "--workers", str(workers), "--blocking-threads", str(threads))
    target = ("--working-dir", str(PACKAGE.parent), "payments_site.wsgi:application")
    command = (sys.executable, "-P", str(PACKAGE / "workers.py"), "--host", host, *numbers, *OPTIONS, *target)
    os.execve(sys.executable, command, environment)  # noqa: S606  no shell


def raise_limit_of_open_files() -> None:
    """Every waiting client needs a file descriptor: up to 8,192 clients per worker (`--backpressure`)."""
    limit, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS has a lower limit than it reports
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))
        return
    sys.stderr.write(f"The limit of open files remains {limit}.\n")
