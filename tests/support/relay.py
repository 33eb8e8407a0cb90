"""A relay in front of a server: a test acts between two requests of a client, changes a response, or sends none."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

HOP_BY_HOP = {"connection", "content-length", "keep-alive", "transfer-encoding"}


class ConnectionEnded(Exception):
    """The relay ends the connection without a response."""


class Answer(NamedTuple):
    """The response of a server."""

    status: int
    headers: dict[str, str]
    body: bytes


@contextmanager
def relayed(
    port: int,
    *,
    before: Callable[[int], None] = lambda _number: None,
    change: Callable[[str, Answer], Answer] = lambda _path, answer: answer,
) -> Iterator[str]:
    """Yield the URL of a relay to a port of this machine. It calls `before` with the number of each request, from 1.

    The client gets what `change` returns for the path and the response; none if `before` raises `ConnectionEnded`.
    """
    requests = 0

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal requests
            requests += 1
            try:
                before(requests)
            except ConnectionEnded:
                return
            answer = change(urlsplit(self.path).path, self.fetch())
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        do_POST = do_PUT = do_GET

        def fetch(self) -> Answer:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection.request(self.command, self.path, body, headers=dict(self.headers))
            response = connection.getresponse()
            answer = Answer(response.status, dict(response.getheaders()), response.read())
            connection.close()
            return answer

        def log_message(self, *_arguments: object) -> None:
            """Do not log to stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
