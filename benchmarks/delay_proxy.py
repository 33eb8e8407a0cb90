"""A proxy that delays all bytes, as a network between a server and PostgreSQL does.

`python -m benchmarks.delay_proxy SOCKET` forwards TCP connections to a Unix socket, and prints its port. Each line of
its stdin sets the round trip in milliseconds, and is printed when it applies. The proxy ends when its stdin ends.
"""

import os
import select
import socket
import sys
import time
from collections import deque
from math import copysign
from typing import NamedTuple

CHUNK_BYTES = 2**16
COMMAND_BYTES = 2**10
EVENTS_MAX = 64

# A process that sleeps wakes up late, usually by 0.1 ms. So chunks are sent early by a correction. A late chunk
# increases the correction and an early one decreases it, so that the median chunk is on time.
CORRECTION_STEP = 1e-6
CORRECTION_MAX = 200e-6


class End:
    """An end of a forwarded connection: the client or PostgreSQL."""

    other: "End"

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.unsent: deque[bytes] = deque()  # while the receiver is slower than the sender
        connected.setblocking(False)  # noqa: FBT003


class Chunk(NamedTuple):
    """Bytes on their way to an end. No bytes close it."""

    due: float
    end: End
    content: bytes


class DelayProxy:
    """Forwards connections in one thread. All chunks have the same delay, so they are due in the order of a queue."""

    def __init__(self, target: str, commands: int) -> None:
        self.target = target
        self.commands = commands
        self.delay = 0.0
        self.correction = 0.0
        self.is_running = True
        self.chunks: deque[Chunk] = deque()
        self.ends: dict[int, End] = {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.epoll = select.epoll()
        self.epoll.register(self.listener, select.EPOLLIN)
        self.epoll.register(commands, select.EPOLLIN)

    def run(self) -> None:
        print(self.listener.getsockname()[1], flush=True)
        while self.is_running:
            for descriptor, event in self.wait():
                self.handle(descriptor, event)
            self.deliver()

    def wait(self) -> list[tuple[int, int]]:
        """Return the next events, or none when a chunk is due. The timeout of epoll would be in whole milliseconds."""
        ready, _, _ = select.select([self.epoll], [], [], self.timeout())
        return self.epoll.poll(0, EVENTS_MAX) if ready else []

    def timeout(self) -> float | None:
        return max(self.chunks[0].due - self.correction - time.perf_counter(), 0) if self.chunks else None

    def handle(self, descriptor: int, event: int) -> None:
        if descriptor == self.commands:
            self.obey()
        elif descriptor == self.listener.fileno():
            self.connect()
        else:
            self.transfer(self.ends[descriptor], event)

    def obey(self) -> None:
        """Set the round trip, or end. The queue keeps the order of chunks that have another delay."""
        command = os.read(self.commands, COMMAND_BYTES)
        self.is_running = bool(command)
        if command:
            self.delay = float(command) / 1000 / 2
            print(command.decode(), end="", flush=True)

    def connect(self) -> None:
        client = End(self.listener.accept()[0])
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        database = End(connected_socket(self.target))
        client.other, database.other = database, client
        for end in (client, database):
            self.ends[end.socket.fileno()] = end
            self.epoll.register(end.socket, select.EPOLLIN)

    def close(self, end: End) -> None:
        self.ends.pop(end.socket.fileno(), None)
        end.socket.close()

    def transfer(self, end: End, event: int) -> None:
        if event & select.EPOLLOUT:
            self.epoll.modify(end.socket, select.EPOLLIN)
            self.send_unsent(end)
        if event & ~select.EPOLLOUT:
            self.receive(end)

    def receive(self, end: End) -> None:
        try:
            content = end.socket.recv(CHUNK_BYTES)
        except OSError:
            content = b""
        if not content:
            self.close(end)
        self.chunks.append(Chunk(time.perf_counter() + self.delay, end.other, content))

    def deliver(self) -> None:
        """Send all chunks that are due."""
        while self.chunks and self.chunks[0].due - self.correction <= (now := time.perf_counter()):
            due, end, content = self.chunks.popleft()
            if self.delay:
                self.correct(now - due)
            end.unsent.append(content)
            if len(end.unsent) == 1:
                self.send_unsent(end)

    def correct(self, lateness: float) -> None:
        correction = self.correction + copysign(CORRECTION_STEP, lateness)
        self.correction = min(max(correction, 0), CORRECTION_MAX)

    def send_unsent(self, end: End) -> None:
        """Send as many bytes as the system takes now. For the others, wait."""
        while end.unsent:
            content = end.unsent.popleft()
            if not content:
                self.close(end)
            elif rest := content[send_now(end.socket, content) :]:
                end.unsent.appendleft(rest)
                self.epoll.modify(end.socket, select.EPOLLIN | select.EPOLLOUT)
                break


def connected_socket(path: str) -> socket.socket:
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(path)
    return connected


def send_now(connected: socket.socket, content: bytes) -> int:
    """Return how many bytes the system takes. If the connection is broken, it takes all; reading will fail too."""
    try:
        return connected.send(content)
    except BlockingIOError:
        return 0
    except OSError:
        return len(content)


if __name__ == "__main__":
    DelayProxy(sys.argv[1], sys.stdin.fileno()).run()
