"""Requests a path on many connections, each as fast as it can, until its stdin is closed. Prints the statuses as JSON.

It is a process of its own: in the process that measures another client, it would delay that client itself.
"""

import json
import os
import selectors
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

RECEIVE_BYTES = 65536


@dataclass
class Connection:
    """A connection that waits for a response."""

    port: int
    request: bytes
    received: bytes = b""
    stream: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.stream = socket.create_connection(("127.0.0.1", self.port))
        self.stream.sendall(self.request)

    def read(self) -> int | None:
        """Read what has arrived. At the end of the response, send the request again and return the status."""
        data = self.stream.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("The service closed a connection.")
        self.received += data
        head, separator, body = self.received.partition(b"\r\n\r\n")
        if not separator or len(body) < content_length(head):
            return None
        self.received = b""
        self.stream.sendall(self.request)
        return int(head.split(maxsplit=2)[1])


def content_length(head: bytes) -> int:
    fields = (line.partition(b":") for line in head.lower().split(b"\r\n")[1:])
    return next((int(value) for name, _, value in fields if name == b"content-length"), 0)


@contextmanager
def flood(port: int, path: str, *, key: str, connections: int) -> Iterator[Counter[str]]:
    """Run a flood in another process during the block. Afterwards, the result has the number of each status."""
    command = [sys.executable, "-m", "benchmarks.attacks.flood", str(port), path, str(connections)]
    process = subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PAYMENTS_KEY": key}
    )
    statuses: Counter[str] = Counter()
    try:
        yield statuses
    finally:
        output, _ = process.communicate()  # closes stdin
        statuses.update(json.loads(output))


def main() -> None:
    port, path, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {os.environ['PAYMENTS_KEY']}\r\n\r\n"
    statuses: Counter[int] = Counter()
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    for _ in range(count):
        connection = Connection(port, request.encode())
        selector.register(connection.stream, selectors.EVENT_READ, connection)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                print(json.dumps(statuses))
                return
            if status := key.data.read():
                statuses[status] += 1


if __name__ == "__main__":
    main()
