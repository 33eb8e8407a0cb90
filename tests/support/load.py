"""Concurrent clients that send requests until a test ends, and the responses that they got."""

import http.client
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tests.support.scale import IS_LONG, report, times
from tests.support.waiting import SECONDS_MAX, wait_until

# In a usual run the clients leave processor time to other tests.
PAUSE_SECONDS = times(100, long=0) / 1000

# All clients must be served again this soon after a fault, and then for this many responses.
RECOVERY_SECONDS_MAX = 1
STEADY_RESPONSES = times(10, long=500)


@dataclass(frozen=True)
class Response:
    """The response to one request. Status 0 means that the connection was closed without a response."""

    started_at: float  # when the request was sent, of time.monotonic
    seconds: float
    status: int
    media_type: str | None = None
    retry_after: str | None = None
    client: int = 0

    @property
    def is_expected(self) -> bool:
        """Whether it is a page, or a problem that says when to try again."""
        if self.status == http.client.SERVICE_UNAVAILABLE:
            return self.media_type == "application/problem+json" and self.retry_after == "1"
        return self.status == http.client.OK


@dataclass
class Load:
    """Clients with the same API key, and a persistent connection each."""

    port: int
    key: str
    path: str = "/v2/payments?limit=20"
    source: str = "127.0.0.1"
    pause_seconds: float = PAUSE_SECONDS
    responses: list[Response] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    clients: int = 0

    @contextmanager
    def running(self, clients: int) -> Iterator["Load"]:
        """Send requests until the block ends, and then wait for the last responses."""
        self.clients = clients
        threads = [threading.Thread(target=self.run_client, args=[number]) for number in range(clients)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.stopped.set()
            for thread in threads:
                thread.join()

    def run_client(self, client: int) -> None:
        connection = self.connection()
        while not self.stopped.is_set():
            self.responses.append(replace(self.send(connection), client=client))
            self.stopped.wait(self.pause_seconds)
        connection.close()

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX, source_address=(self.source, 0))

    def send(self, connection: http.client.HTTPConnection) -> Response:
        started_at = time.monotonic()
        try:
            connection.request("GET", self.path, headers={"Authorization": f"Bearer {self.key}"})
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return Response(started_at, time.monotonic() - started_at, 0)
        return Response(
            started_at,
            time.monotonic() - started_at,
            response.status,
            response.getheader("Content-Type"),
            response.getheader("Retry-After"),
        )

    def get(self) -> Response:
        """Send one request on a new connection."""
        connection = self.connection()
        try:
            return self.send(connection)
        finally:
            connection.close()

    def get_until(self, condition: Callable[[Response], bool]) -> list[Response]:
        """Send requests until a response meets the condition. Right after a fault some requests still fail fast."""
        responses: list[Response] = []

        def is_met() -> bool:
            responses.append(self.get())
            return condition(responses[-1])

        wait_until(is_met, explain=lambda: f"no response met the condition; the last was {responses[-1]}")
        return responses

    def sent_after(self, moment: float) -> list[Response]:
        """Return the responses to requests that were sent after a moment of time.monotonic."""
        return [response for response in self.responses if response.started_at > moment]

    def wait_for(self, status: int, *, after: float) -> None:
        """Wait for a response of that status to a request that was sent after the moment."""
        wait_until(
            lambda: any(response.status == status for response in self.sent_after(after)),
            explain=lambda: f"no response has status {status}",
        )

    def wait_for_all(self, status: int, *, after: float, count: int = 1) -> None:
        """Wait until every client has `count` responses of that status to requests that it sent after the moment."""
        wait_until(
            lambda: len(self.clients_with(status, after=after, count=count)) == self.clients,
            explain=lambda: f"not all clients have {count} responses of status {status}",
        )

    def clients_with(self, status: int, *, after: float, count: int) -> list[int]:
        """Return the clients that have at least `count` such responses."""
        numbers = Counter(response.client for response in self.sent_after(after) if response.status == status)
        return [client for client, number in numbers.items() if number >= count]

    def assert_recovered(self, *, repaired_at: float) -> None:
        """Wait until every client is served again, and check that no later request fails.

        A long run also checks that clients are served soon after the fault was repaired.
        """
        self.wait_for_all(http.client.OK, after=repaired_at)
        served_at = time.monotonic()
        self.wait_for_all(http.client.OK, after=served_at, count=STEADY_RESPONSES)
        steady_at = min(served_at, repaired_at + RECOVERY_SECONDS_MAX) if IS_LONG else served_at
        assert [response for response in self.sent_after(steady_at) if response.status != http.client.OK] == []

    def assert_expected(self, *, seconds_max: float) -> None:
        """Check that every response is a page or an expected problem; in a long run, also how long it took."""
        assert [response for response in self.responses if not response.is_expected] == []
        self.assert_in_time(seconds_max=seconds_max)

    def assert_in_time(self, *, seconds_max: float) -> None:
        """Check the duration of each response, but only in a long run, when no other test uses the machine."""
        assert not IS_LONG or [response for response in self.responses if response.seconds > seconds_max] == []

    @property
    def failed(self) -> int:
        """Return how many responses are not 200."""
        return sum(response.status != http.client.OK for response in self.responses)

    def report(self, fault: str) -> None:
        """Report the figures of a long run, for benchmarks/README.md."""
        slowest = max(response.seconds for response in self.responses)
        report(
            f"{fault}: {len(self.responses)} requests, {self.failed} of them failed, the slowest took {slowest:.2f} s"
        )


def median_milliseconds(loads: Mapping[str, Load], *, requests: int) -> dict[str, float]:
    """Send so many requests of each load, in turn, and return the median duration for each."""
    rounds = [{name: load.get().seconds for name, load in loads.items()} for _ in range(requests)]
    return {name: statistics.median(seconds[name] for seconds in rounds) * 1000 for name in loads}
