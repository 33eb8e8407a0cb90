"""Whoever sends a body so slowly that others wait: cut off."""

import os
import socket
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from payments.runtime.deadlines import Abortable

DESCRIPTORS = "/proc/self/fd"
INTERNET = {socket.AF_INET, socket.AF_INET6}

# Where Linux tells how many milliseconds ago the last byte came (struct tcp_info: tcpi_last_data_recv).
LAST_RECEIVED = struct.Struct("52xI")

# Until a cut is felt by who reads.
FELT_SECONDS_MAX = 0.005


class Sender(Abortable):
    """An address that sends a body: on which of its connections, the server keeps to itself.

    Of those that are open, it is among the first on which nothing came any more: behind the idle ones, and before those
    that wait for an answer.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.has_ended = threading.Event()

    def abort(self) -> None:
        """Cut one connection after the other, until the body has ended."""
        with ExitStack() as stack:
            lines = [stack.enter_context(line) for line in lines_to(self.address)]
            for line in sorted(lines, key=milliseconds_silent, reverse=True):
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)
                if self.has_ended.wait(FELT_SECONDS_MAX):
                    break


def lines_to(address: str) -> Iterator[socket.socket]:
    """Yield this process's connections with an address, each under a number of its own."""
    for name in os.listdir(DESCRIPTORS):  # noqa: PTH208  numbers are what is wanted
        with suppress(OSError):  # it has been closed meanwhile
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            line = socket.socket(fileno=os.dup(int(name)))
            if leads_to(address, line):
                yield line
            else:
                line.close()


def leads_to(address: str, line: socket.socket) -> bool:
    try:
        return line.family in INTERNET and bool(line.getpeername()[0] == address)
    except OSError:
        return False  # nobody is at its other end


def milliseconds_silent(line: socket.socket) -> int:
    told = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_RECEIVED.size)
    (milliseconds,) = LAST_RECEIVED.unpack(told)
    return int(milliseconds)
