"""A local HTTP server that owns its clock and can fail."""

import json
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qs, urlsplit

NO_LINGER = struct.pack("ii", 1, 0)  # closing a socket resets the connection

Parameters: TypeAlias = dict[str, list[str]]


class Request(NamedTuple):
    """A request that the server has received."""

    method: str
    path: str
    parameters: Parameters
    headers: Mapping[str, str]
    body: bytes

    @property
    def token(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")


class Reply(NamedTuple):
    """The response of a server."""

    status: int
    document: Any
    headers: Mapping[str, str] = {}


class Fault(NamedTuple):
    """A failure of one request: another reply, or none.

    A `lost` response follows work that was done: the connection ends before the response, or within it.
    """

    reply: Reply | None = None
    lost: bool = False
    truncated: bool = False


TOO_MANY = Fault(Reply(429, {"status": 429}, {"Retry-After": "0"}))
UNAVAILABLE = Fault(Reply(503, {"status": 503}, {"Retry-After": "0"}))
BROKEN = Fault(Reply(500, {"status": 500}, {"Retry-After": "0"}))
RESET = Fault()
LOST = Fault(lost=True)
TRUNCATED = Fault(lost=True, truncated=True)


@dataclass
class HttpServer:
    """A server whose subclass responds to requests. `faults` happen first, one per request, then those of `chaos`.

    The functions `before`, `after` and `sent` are called before a response is made, before it is sent, and then.
    """

    key: str
    now: datetime = datetime(2026, 1, 31, tzinfo=UTC)
    faults: list[Fault | None] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    before: Callable[[Request], None] = lambda _request: None
    after: Callable[[Request], None] = lambda _request: None
    sent: Callable[[Request], None] = lambda _request: None
    chaos: Callable[[], Fault | None] = lambda: None
    url: str = ""
    prefix: str = ""  # of the IDs: a service has an ID only once
    lock: Any = field(default_factory=Lock)

    def respond(self, request: Request) -> Reply:
        raise NotImplementedError

    def next_fault(self) -> Fault | None:
        return self.faults.pop(0) if self.faults else self.chaos()

    @contextmanager
    def serving(self) -> Iterator["HttpServer"]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"owner": self}))
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.001})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Reads a request, and sends the reply of the server or the fault."""

    owner: HttpServer

    def handle(self) -> None:
        with suppress(ConnectionError):  # the program was killed
            super().handle()

    def handle_request(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parameters = parse_qs(parts.query, keep_blank_values=True)
        request = Request(self.command, parts.path, parameters, dict(self.headers), body)
        with self.owner.lock:
            self.owner.requests.append(request)
            self.owner.before(request)
            fault = self.owner.next_fault()
            reply = fault.reply if fault and not fault.lost else self.owner.respond(request)
            content = json.dumps(reply.document).encode() if reply else b""
            self.owner.after(request)
        if reply is None or (fault and fault.lost and not fault.truncated):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            self.connection.close()
            return
        self.send(reply, content, truncated=fault is not None and fault.truncated)
        self.owner.sent(request)

    do_GET = do_POST = handle_request

    def send(self, reply: Reply, content: bytes, *, truncated: bool) -> None:
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(content)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if truncated else content)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return format_datetime(self.owner.now, usegmt=True)

    def log_message(self, *_: Any) -> None:
        pass
