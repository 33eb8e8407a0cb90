"""Clients that ask again and again, and what each of their requests came to."""

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tests.support.scale import IS_LONG, report, times

# Only a client that waits in vain waits so long: no test depends on how fast this machine is.
CLIENT_SECONDS_MAX = 60

# A usual run leaves the processors to the other tests.
PAUSE_SECONDS = times(100, long=0) / 1000

# Pause between checks of the answers so far.
LOOK_SECONDS = 0.05

# How soon after a fault every client is served again, and how many answers show that it stays so.
BACK_SECONDS_MAX = 1
STEADY_ANSWERS = times(10, long=500)


@dataclass(frozen=True)
class Answer:
    """What came, and when; status 0 is a connection that was closed without an answer."""

    begun_at: float  # of time.monotonic
    seconds: float
    status: int
    media_type: str | None = None
    retry_after: str | None = None
    client: int = 0

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
    pause_seconds: float = PAUSE_SECONDS
    answers: list[Answer] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)
    clients: int = 0

    @contextmanager
    def of(self, clients: int) -> Iterator["Load"]:
        """Ask until the block ends, and wait for the last answers."""
        self.clients = clients
        threads = [threading.Thread(target=self.ask_again_and_again, args=[number]) for number in range(clients)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()

    def ask_again_and_again(self, client: int) -> None:
        connection = self.connection()
        while not self.is_over.is_set():
            self.answers.append(replace(self.ask(connection), client=client))
            self.is_over.wait(self.pause_seconds)
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

    def ask_until(self, condition: Callable[[Answer], bool]) -> list[Answer]:
        """Ask until an answer meets the condition. Right after a fault some requests still fail fast."""
        end = time.monotonic() + CLIENT_SECONDS_MAX
        answers = [self.ask_once()]
        while not condition(answers[-1]):
            assert time.monotonic() < end, f"no answer met the condition; the last was {answers[-1]}"
            time.sleep(LOOK_SECONDS)
            answers.append(self.ask_once())
        return answers

    def begun_after(self, moment: float) -> list[Answer]:
        return [answer for answer in self.answers if answer.begun_at > moment]

    def wait_for(self, status: int, *, begun_after: float, seconds_max: float = CLIENT_SECONDS_MAX) -> None:
        """Wait until some request that began later had an answer of that status."""
        end = time.monotonic() + seconds_max
        while not any(answer.status == status for answer in self.begun_after(begun_after)):
            assert time.monotonic() < end, f"no answer {status}"
            time.sleep(LOOK_SECONDS)

    def wait_for_each(self, status: int, *, begun_after: float, count: int = 1) -> None:
        """Wait until every client has had so many answers of that status to requests that it began later."""
        end = time.monotonic() + CLIENT_SECONDS_MAX
        while len(self.served(status, begun_after=begun_after, count=count)) < self.clients:
            assert time.monotonic() < end, f"not every client has had {count} answers {status}"
            time.sleep(LOOK_SECONDS)

    def served(self, status: int, *, begun_after: float, count: int) -> list[int]:
        """Return the clients that have had so many such answers."""
        answers = Counter(answer.client for answer in self.begun_after(begun_after) if answer.status == status)
        return [client for client, number in answers.items() if number >= count]

    def assert_well_again(self, *, back_at: float) -> None:
        """Wait until every client is served again; from then on, none may fail any more."""
        self.wait_for_each(http.client.OK, begun_after=back_at)
        well_at = time.monotonic()
        self.wait_for_each(http.client.OK, begun_after=well_at, count=STEADY_ANSWERS)
        steady_at = min(well_at, back_at + BACK_SECONDS_MAX) if IS_LONG else well_at
        assert [answer for answer in self.begun_after(steady_at) if answer.status != http.client.OK] == []

    def assert_kept(self, *, seconds_max: float) -> None:
        """Check that every answer is a page or a refusal as promised; in a long run, also how long each took."""
        assert [answer for answer in self.answers if not answer.is_promised] == []
        self.assert_in_time(seconds_max=seconds_max)

    def assert_in_time(self, *, seconds_max: float) -> None:
        """Check how long answers took where nothing else runs: in a long run."""
        assert not IS_LONG or [answer for answer in self.answers if answer.seconds > seconds_max] == []

    def tell(self, what: str) -> None:
        """Report what a long run came to."""
        failed = sum(answer.status != http.client.OK for answer in self.answers)
        slowest = max(answer.seconds for answer in self.answers)
        report(f"{what}: {len(self.answers)} requests, {failed} of them in vain, the slowest after {slowest:.2f} s")
