"""HTTP requests and responses. A request is sent to the application in this process, or over a socket."""

import io
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.client import BadStatusLine, HTTPResponse
from typing import Any
from urllib.parse import unquote_to_bytes
from wsgiref.util import setup_testing_defaults

RESPONSE_SECONDS_MAX = 30

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class Request:
    """A request as the client sends it. Every character of its strings is one byte."""

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
        """The WSGI environment of the request (PEP 3333). A header that occurs twice becomes a list with commas."""
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
    """A response as the client receives it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the value of a header, or None if it is missing or occurs twice."""
        values = [value for other_name, value in self.headers if other_name.lower() == name.lower()]
        return values[0] if len(values) == 1 else None


def call(application: Application, request: Request) -> Response:
    """Send a request to the application in this process, as its server would."""
    start: list[Any] = []
    body = application(request.environ, lambda status, headers: start.extend([status, headers]))
    status, headers = start
    is_body_sent = request.method.upper() != "HEAD"  # a server does not send the body of HEAD
    return Response(int(status.split()[0]), tuple(headers), b"".join(body) if is_body_sent else b"")


def send(port: int, request: Request) -> Response:
    """Send a request to the server on a new connection."""
    response = exchange(port, request.wire, method=request.method.upper())
    assert response is not None, "the server closed the connection"
    return response


def exchange(port: int, wire: bytes, *, method: str = "GET") -> Response | None:
    """Send bytes to the server, and return the first response, or None if the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=RESPONSE_SECONDS_MAX) as connection:
        try:
            connection.sendall(wire)
            response = HTTPResponse(connection, method=method)
            response.begin()
            return Response(response.status, tuple(response.getheaders()), response.read())
        except (ConnectionError, BadStatusLine):
            return None
