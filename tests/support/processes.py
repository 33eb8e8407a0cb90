"""Server processes of the tests, and waiting until they listen."""

import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from tests.support.waiting import wait_until

ROOT: Final = Path(__file__).resolve().parents[2]


def wait_until_listening(server: subprocess.Popen[bytes], port: int, *, workers: int = 1) -> None:
    """Wait until this many workers of a server listen. Every worker of Granian has its own socket.

    A worker that gets SIGTERM while it starts takes five seconds to end.
    """

    def are_listening() -> bool:
        assert server.poll() is None, f"{server.args!r} ended with {server.returncode}"
        return is_listening(port) and (workers == 1 or count_listeners(server, port) >= workers)

    wait_until(are_listening, poll_seconds=0.1, explain=lambda: f"{server.args!r} did not begin to listen")


def is_listening(port: int) -> bool:
    """Return whether any process listens on a port. This is much faster than counting the listeners."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def count_listeners(server: subprocess.Popen[bytes], port: int) -> int:
    """Return how many sockets of a server and of the processes that it started listen on a port."""
    with suppress(psutil.NoSuchProcess):
        main = psutil.Process(server.pid)
        return sum(
            connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            for process in (main, *main.children(recursive=True))
            for connection in process.net_connections("tcp")
        )
    return 0
