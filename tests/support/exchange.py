"""HTTP requests and responses. A request is sent to the application in this process, or over a socket."""

import io
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.client import BadStatusLine, HTTPResponse
from typing import Any
from urllib.parse import unquote_to_bytes
from wsgiref.util import setup_testing_defaults

from tests.support.waiting import SECONDS_MAX

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class Request:
    """A request as a client sends it. Each character of its texts is one byte."""

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
        """The bytes of the request."""
        length = [("Content-Length", str(len(self.body)))] if self.body else []
        lines = [f"{self.line} HTTP/1.1", *(f"{name}: {value}" for name, value in [*self.headers, *length])]
        return "\r\n".join([*lines, "", self.body]).encode("latin-1")

    @property
    def environ(self) -> dict[str, Any]:
        """The WSGI environment of the request (PEP 3333). Repeated headers become one list."""
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
class Response:
    """A response as a client receives it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the value of a header; None if it is missing or repeated."""
        values = [value for header, value in self.headers if header.lower() == name.lower()]
        return values[0] if len(values) == 1 else None


def call_application(application: Application, request: Request) -> Response:
    """Call the application in this process, as its server does, and return the response."""
    arguments: list[Any] = []
    body = application(request.environ, lambda status, headers: arguments.extend([status, headers]))
    status, headers = arguments
    has_body = request.method.upper() != "HEAD"  # the server removes the body of a response to HEAD
    return Response(int(status.split()[0]), tuple(headers), b"".join(body) if has_body else b"")


def send_request(port: int, request: Request) -> Response:
    """Send a request to the server on a new connection and return the response."""
    response = send_bytes(port, request.wire, method=request.method.upper())
    assert response is not None, "the server closed the connection"
    return response


def send_bytes(port: int, wire: bytes, *, method: str = "GET") -> Response | None:
    """Send any bytes and return the first response; None if the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as connection:
        try:
            connection.sendall(wire)
            response = HTTPResponse(connection, method=method)
            response.begin()
            return Response(response.status, tuple(response.getheaders()), response.read())
        except (ConnectionError, BadStatusLine):
            return None
