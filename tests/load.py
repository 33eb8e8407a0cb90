"""Clients that ask again and again, and what each of their requests came to."""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.scale import report

CLIENT_SECONDS_MAX = 30


@dataclass(frozen=True)
class Answer:
    """What came, and when; status 0 is a connection that was closed without an answer."""

    begun_at: float  # of time.monotonic
    seconds: float
    status: int
    media_type: str | None = None
    retry_after: str | None = None

    @property
    def is_promised(self) -> bool:
        """Tell whether it is a page, or the word that there is none now and when to ask again."""
        if self.status == http.client.SERVICE_UNAVAILABLE:
            return self.media_type == "application/problem+json" and self.retry_after == "1"
        return self.status == http.client.OK


@dataclass
class Load:
    """Some clients of one key, each with a connection that it keeps."""

    port: int
    key: str
    path: str = "/v2/payments?limit=20"
    source: str = "127.0.0.1"
    answers: list[Answer] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def of(self, clients: int) -> Iterator["Load"]:
        """Ask until the block ends, and wait for the last answers."""
        threads = [threading.Thread(target=self.ask_again_and_again) for _ in range(clients)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()

    def ask_again_and_again(self) -> None:
        connection = self.connection()
        while not self.is_over.is_set():
            self.answers.append(self.ask(connection))
        connection.close()

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=CLIENT_SECONDS_MAX, source_address=(self.source, 0)
        )

    def ask(self, connection: http.client.HTTPConnection) -> Answer:
        begun_at = time.monotonic()
        try:
            connection.request("GET", self.path, headers={"Authorization": f"Bearer {self.key}"})
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return Answer(begun_at, time.monotonic() - begun_at, 0)
        return Answer(
            begun_at,
            time.monotonic() - begun_at,
            response.status,
            response.getheader("Content-Type"),
            response.getheader("Retry-After"),
        )

    def ask_once(self) -> Answer:
        connection = self.connection()
        try:
            return self.ask(connection)
        finally:
            connection.close()

    def begun_after(self, moment: float) -> list[Answer]:
        return [answer for answer in self.answers if answer.begun_at > moment]

    def wait_for(self, status: int, *, begun_after: float, seconds_max: float = CLIENT_SECONDS_MAX) -> None:
        """Wait until some request that began later had an answer of that status."""
        end = time.monotonic() + seconds_max
        while not any(answer.status == status for answer in self.begun_after(begun_after)):
            assert time.monotonic() < end, f"no answer {status}"
            time.sleep(0.01)

    def tell(self, what: str) -> None:
        """Report what a long run came to."""
        failed = sum(answer.status != http.client.OK for answer in self.answers)
        slowest = max(answer.seconds for answer in self.answers)
        report(f"{what}: {len(self.answers)} requests, {failed} of them in vain, the slowest after {slowest:.2f} s")
