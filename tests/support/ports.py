"""Ports that no other process of the test run uses.

After a process binds port 0 and closes the socket, another process may take the port. Instead every process reserves a
block of ports, and holds the block's first port until it ends. The blocks lie below the range from which the kernel
takes ports for outgoing connections. Otherwise a client that connects to a port on which nothing listens yet could get
the same port, and connect to itself.
"""

import socket
from contextlib import suppress
from functools import cache
from itertools import cycle

PORT_MIN, PORT_MAX = 20_000, 32_000
BLOCK_PORTS = 100


class Block:
    """A reserved block of ports."""

    def __init__(self, reserved: socket.socket) -> None:
        self.reserved = reserved
        first = reserved.getsockname()[1] + 1
        self.ports = cycle(range(first, first + BLOCK_PORTS - 1))

    def next_free(self) -> int:
        """Return a port on which nothing listens; a port is used again only after all others."""
        return next(port for port in self.ports if is_free(port))


@cache
def own_block() -> Block:
    for port in range(PORT_MIN, PORT_MAX, BLOCK_PORTS):
        with suppress(OSError):
            return Block(socket.create_server(("127.0.0.1", port), backlog=0))
    raise AssertionError("Other test runs have reserved all ports.")


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """Return a port of this process's own block on which nothing listens."""
    return own_block().next_free()
