"""A relay in front of the deployed service: a test acts between two requests of a client, or ends its connection."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding"}


class ConnectionEnded(Exception):
    """The relay ends the connection without a response."""


@contextmanager
def relayed(port: int, *, before: Callable[[int], None]) -> Iterator[str]:
    """Yield the URL of a relay to a port of this machine. It calls `before` with the number of each request, from 1.

    If `before` raises `ConnectionEnded`, the client gets no response.
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
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", self.path, headers=dict(self.headers))
            response = connection.getresponse()
            body = response.read()
            connection.close()
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

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
