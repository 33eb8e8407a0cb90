"""What a page is sent: read whole, within a time, before anybody looks at it.

A worker answers one request at a time, and whoever sends a body slowly has it wait: the server sets no time for bodies.
So a sender that takes too long is cut off, and for a while nothing is read from there. From a proxy that is trusted
requests are expected whole. The API reads no bodies.
"""

import os
import socket
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http import HTTPStatus
from io import BytesIO
from typing import Any

from django.conf import settings
from django.utils.http import parse_header_parameters

from payments import limits
from payments.clients import client_address
from payments.limits import Limit
from payments_site.watchdog import waits

SLOW_BODIES = Limit(1, seconds=60)
MEDIA_TYPE_CHARACTERS_MAX = 256
LENGTH_DIGITS_MAX = 10

DESCRIPTORS = "/proc/self/fd"
INTERNET = {socket.AF_INET, socket.AF_INET6}

# Where Linux tells how many milliseconds ago the last byte came (struct tcp_info: tcpi_last_data_recv).
LAST_RECEIVED = struct.Struct("52xI")

# Until a cut is felt by who reads.
FELT_SECONDS_MAX = 0.005


class NotReceived(Exception):
    """A body that did not come, and the status that says why."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class Sender:
    """An address that sends a body: on which of its connections, the server keeps to itself.

    Of those that are open, it is among the first on which nothing came any more: behind the idle ones, and before those
    that wait for an answer.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.has_ended = threading.Event()

    def cut(self) -> None:
        """Cut one connection after the other, until the body has ended."""
        with ExitStack() as stack:
            lines = [stack.enter_context(line) for line in lines_to(self.address)]
            for line in sorted(lines, key=milliseconds_silent, reverse=True):
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)
                if self.has_ended.wait(FELT_SECONDS_MAX):
                    break

    def close(self) -> None:
        """Have nothing to close."""


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


def receive(environ: dict[str, Any]) -> None:
    """Put the whole body into a request's environment, in place of the stream.

    :raises NotReceived: where it is too long, too slow, ends too early, or is of no kind that Django can read
    """
    if not is_media_type(environ.get("CONTENT_TYPE", "")):
        raise NotReceived(HTTPStatus.BAD_REQUEST)
    text = environ.get("CONTENT_LENGTH") or "0"
    digits = text if text.isascii() and text.isdigit() else "0"  # as Django takes it
    if len(digits) > LENGTH_DIGITS_MAX or int(digits) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise NotReceived(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if length := int(digits):
        environ["wsgi.input"] = BytesIO(read(environ, length))


def is_media_type(text: str) -> bool:
    """Tell whether Django can take the text apart; the longer it is, the longer that takes."""
    if len(text) > MEDIA_TYPE_CHARACTERS_MAX:
        return False
    try:
        parse_header_parameters(text)
    except (LookupError, ValueError):  # one for an encoding that nobody knows
        return False
    return True


def read(environ: dict[str, Any], length: int) -> bytes:
    sender = f"slow body {client_address(environ)}"
    if limits.find(sender, SLOW_BODIES).remaining <= 0:
        raise NotReceived(HTTPStatus.TOO_MANY_REQUESTS)
    line = Sender(environ["REMOTE_ADDR"])
    waits.body.keep(None if settings.TRUST_PROXY else line)
    with waits.body:
        try:
            body: bytes = environ["wsgi.input"].read(length)
        except OSError:  # some servers say so of a client that has gone
            body = b""
        finally:
            line.has_ended.set()
    if len(body) < length:
        limits.count(sender, SLOW_BODIES)
        raise NotReceived(HTTPStatus.REQUEST_TIMEOUT)
    return body
