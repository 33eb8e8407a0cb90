"""Requests and answers as HTTP has them, and two ways from the one to the other: in this process, or over a socket."""

import io
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.client import BadStatusLine, HTTPResponse
from typing import Any
from urllib.parse import unquote_to_bytes
from wsgiref.util import setup_testing_defaults

ANSWER_SECONDS_MAX = 30

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class Request:
    """A request as it is sent: every character of its texts is one byte."""

    line: str  # "GET /v2/payments?limit=5"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""

    @property
    def method(self) -> str:
        return self.line.partition(" ")[0]

    @property
    def target(self) -> str:
        return self.line.partition(" ")[2]

    @property
    def wire(self) -> bytes:
        length = [("Content-Length", str(len(self.body)))] if self.body else []
        lines = [f"{self.line} HTTP/1.1", *(f"{name}: {value}" for name, value in [*self.headers, *length])]
        return "\r\n".join([*lines, "", self.body]).encode("latin-1")

    @property
    def environ(self) -> dict[str, Any]:
        """The same as WSGI has it (PEP 3333), with a header that is given twice as one list."""
        path, _, query = self.target.partition("?")
        fields: dict[str, str] = {}
        for name, value in self.headers:
            variable = name.upper().replace("-", "_")
            if variable not in {"CONTENT_TYPE", "CONTENT_LENGTH"}:
                variable = f"HTTP_{variable}"
            fields[variable] = f"{fields[variable]},{value}" if variable in fields else value
        environ = {
            "REQUEST_METHOD": self.method,
            "PATH_INFO": unquote_to_bytes(path.encode("latin-1")).decode("latin-1"),
            "QUERY_STRING": query,
            "HTTP_HOST": "",
            "wsgi.input": io.BytesIO(self.body.encode("latin-1")),
            **fields,
        }
        setup_testing_defaults(environ)
        return environ


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the header's value; None where it is missing, and where it is there twice."""
        values = [value for known, value in self.headers if known.lower() == name.lower()]
        return values[0] if len(values) == 1 else None


def call(application: Application, request: Request) -> Answer:
    """Ask the application in this process, as its server would."""
    told: list[Any] = []
    body = application(request.environ, lambda status, headers: told.extend([status, headers]))
    status, headers = told
    is_body_sent = request.method.upper() != "HEAD"  # the server sees to that
    return Answer(int(status.split()[0]), tuple(headers), b"".join(body) if is_body_sent else b"")


def send(port: int, request: Request) -> Answer:
    """Ask the server, on a connection of its own."""
    answer = exchange(port, request.wire, method=request.method.upper())
    assert answer is not None, "the server closed the connection"
    return answer


def exchange(port: int, wire: bytes, *, method: str = "GET") -> Answer | None:
    """Send bytes, whatever they are, and return the first answer; None where the server hangs up instead."""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS_MAX) as connection:
        try:
            connection.sendall(wire)
            response = HTTPResponse(connection, method=method)
            response.begin()
            return Answer(response.status, tuple(response.getheaders()), response.read())
        except (ConnectionError, BadStatusLine):
            return None
