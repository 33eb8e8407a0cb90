"""Server processes of the tests: where they start, and how long a start or a stop may take at most."""

import socket
import subprocess
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
START_SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 30


def wait_until_listening(server: subprocess.Popen[bytes], port: int, *, seconds_max: int = START_SECONDS_MAX) -> None:
    for _ in range(seconds_max * 10):
        assert server.poll() is None, f"{server.args!r} ended with {server.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"{server.args!r} did not begin to listen")
