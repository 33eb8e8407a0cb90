"""An import over HTTP writes all payments or none if client, worker or database end. A repeated one completes it."""

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

import psycopg
import pytest

from tests.support.lines import line
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.scale import SEED, report, times
from tests.support.service import START, Service, workers
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = [pytest.mark.extended, pytest.mark.processes, pytest.mark.once("postgresql")]

RECORDS = 2_000
RESPAWN_SECONDS = 6  # Granian ends if a new worker ends within this time
IMPORT_SECONDS = 1.0  # an import ends within this time
QUERY = "SELECT description, count(*) FROM payments_payment GROUP BY description"


def body_with(text: str) -> bytes:
    return b"".join(line(id=f"pt_{number}", description=text) + b"\n" for number in range(RECORDS))


@dataclass(frozen=True)
class Sender:
    """A client that sends the same payments again and again, each time with another description."""

    service: Service
    server: BreakablePostgresql
    key: str

    @contextmanager
    def sending(self, body: bytes, *, length: int) -> Iterator[http.client.HTTPConnection]:
        """Send the beginning of a body of this length. The connection is closed at the end."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=SECONDS_MAX)) as connection:
            connection.putrequest("POST", "/v2/payments/imports")
            connection.putheader("Authorization", f"Bearer {self.key}")
            connection.putheader("Content-Type", "application/x-ndjson")
            connection.putheader("Content-Length", str(length))
            connection.endheaders()
            connection.send(body)
            yield connection

    def send(self, text: str) -> int:
        """Return the status of an import of payments with this description; of an empty one without it."""
        body = body_with(text) if text else b""
        with self.sending(body, length=len(body)) as connection:
            return connection.getresponse().status

    def complete(self, text: str) -> None:
        """Send an import until it succeeds, and once more. The second one changes nothing."""
        wait_until(lambda: self.try_to_send(text) == http.client.OK)
        revision = "SELECT revision FROM payments_accessstate"
        before = self.server.fetch_value(revision)
        assert self.send(text) == http.client.OK
        assert self.server.fetch_value(revision) == before
        assert self.stored() == {text: RECORDS}

    def try_to_send(self, text: str) -> int | None:
        with suppress(OSError, http.client.HTTPException):
            return self.send(text)
        return None

    def stored(self) -> dict[str, int]:
        """Return the number of stored payments by their description."""
        with psycopg.connect(self.service.database_url) as connection:
            return dict(connection.execute(QUERY).fetchall())


@pytest.fixture(scope="module")
def sender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sender]:
    with breakable_postgresql() as server:
        service = Service(server.url, log=tmp_path_factory.mktemp("kills") / "log")
        service.migrate()
        service.create_organization(1)
        key = service.create_api_key(organization=1, mode="live", scope="import")
        with service.serving(START):
            yield Sender(service, server, key)


def kill_worker(sender: Sender) -> None:
    [worker] = workers(sender.service)
    worker.kill()
    time.sleep(RESPAWN_SECONDS)


def kill_database(sender: Sender) -> None:
    sender.server.kill()
    sender.server.start()


@pytest.mark.parametrize("fault", [kill_worker, kill_database])
def test_import_whose_worker_or_database_ends_writes_all_or_nothing(
    sender: Sender, fault: Callable[[Sender], None]
) -> None:
    chance, outcomes = random.Random(SEED), Counter[str]()  # noqa: S311
    for number in range(times(4, long=70)):
        before, text = sender.stored(), f"{fault.__name__} {number}"
        thread = threading.Thread(target=sender.try_to_send, args=[text])
        thread.start()
        time.sleep(chance.uniform(0, IMPORT_SECONDS))
        fault(sender)
        thread.join()

        after = sender.stored()

        assert after in (before, {text: RECORDS})
        outcomes["nothing" if after == before else "all"] += 1
        sender.complete(text)
    report(f"{outcomes.total()} imports, {fault.__name__}; written: {dict(outcomes)}")


def test_import_whose_client_ends_writes_all_or_nothing(sender: Sender) -> None:
    chance, outcomes = random.Random(SEED), Counter[str]()  # noqa: S311
    for number in range(times(4, long=70)):
        before, text = sender.stored(), f"client {number}"
        body = body_with(text)
        sent = body[: len(body) // chance.choice([1, 2])]
        with suppress(OSError), sender.sending(sent, length=len(body)):
            time.sleep(chance.uniform(0, IMPORT_SECONDS))

        wait_until(lambda: sender.send("") == http.client.OK)  # the import has ended
        after = sender.stored()

        assert after in (before, {text: RECORDS})
        outcomes["nothing" if after == before else "all"] += 1
        sender.complete(text)
    report(f"{outcomes.total()} clients ended; written: {dict(outcomes)}")
