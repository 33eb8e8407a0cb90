"""HTTP requests to the OpenID provider."""

from typing import Any

from requests import Response, Session

from payments.runtime.process import process

# For a connection, and for each part of an answer.
SECONDS_MAX = 5


class ProviderSession(Session):
    """A session with a timeout. The time of its requests does not count as time of the database.

    It follows no redirects: a request contains the secret of the client.
    """

    def request(self, *args: Any, **options: Any) -> Response:
        with process.deadlines.database.paused():
            return super().request(*args, **{"timeout": SECONDS_MAX, **options, "allow_redirects": False})
