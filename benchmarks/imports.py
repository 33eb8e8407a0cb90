"""Imports over the API: records per second and response times, and the lists that clients read meanwhile."""

import http.client
import itertools
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from benchmarks import dataset
from benchmarks.database import IMPORT, LoadedDatabase, log, manage
from benchmarks.options import Options
from benchmarks.servers import SERVICE, RunningServer, running
from payments.record import encode

SIZES = (1, 100, 10_000)
CLIENTS = (1, 8)
FILES = 3
NEW_IDS = itertools.count()
READS_PER_SECOND = 50  # a server that is never idle shows only that the processors are busy


def measure_imports(options: Options, database: LoadedDatabase) -> dict[str, Any]:
    """Measure imports of new payments by the command and over the API, of each size and number of clients."""
    log("Measuring imports over the API")
    records = [record for record in dataset.records(20_000) if record.organization_id == str(dataset.LARGE.id)]
    templates = [encode(record) for record in records[: max(SIZES)]]
    create = ("create_api_key", "--organization", str(dataset.LARGE.id), "--mode", dataset.MODE, "--scope", "import")
    keys = [manage(database.url, *create, "--name", f"{number}").strip() for number in range(max(CLIENTS))]
    results: dict[str, Any] = {"command": {str(size): measure_command(database, templates, size) for size in SIZES}}
    with running(SERVICE, database) as server:
        results["list_idle"] = read_lists(server, options.seconds)
        for clients, size in itertools.product(CLIENTS, SIZES):
            with sending(server, keys[:clients], templates, size) as seconds, timed() as elapsed:
                lists = read_lists(server, options.seconds)
            results[f"{clients} clients, {size} records"] = {
                "records_per_second": round(size * len(seconds) / elapsed[0]),
                **percentiles(seconds),
                "list": lists,
            }
    return {"imports": results}


def body(templates: Sequence[bytes], size: int) -> bytes:
    """Return JSON Lines of new payments: the same ones with other IDs."""
    lines = (b'{"id":"pt_new%d",%s' % (next(NEW_IDS), line.partition(b",")[2]) for line in templates[:size])
    return b"\n".join(lines)


def measure_command(database: LoadedDatabase, templates: Sequence[bytes], size: int) -> dict[str, float]:
    seconds = []
    with TemporaryDirectory() as directory:
        for number in range(FILES):
            (path := Path(directory) / f"{number}").write_bytes(body(templates, size))
            with timed() as elapsed:
                manage(database.url, *IMPORT, str(path))
            seconds.append(elapsed[0])
    return {"records_per_second": round(size / statistics.median(seconds)), **percentiles(seconds)}


@contextmanager
def sending(server: RunningServer, keys: Sequence[str], templates: Sequence[bytes], size: int) -> Iterator[list[float]]:
    """Let a client for each key send bodies during the block, one after the other. Yield the times of the imports."""
    seconds: list[float] = []
    is_over = threading.Event()

    def send(key: str) -> None:
        while not is_over.is_set():
            content, started_at = body(templates, size), time.perf_counter()
            while post(server, key, content) == http.client.TOO_MANY_REQUESTS and not is_over.is_set():
                is_over.wait(1)  # as Retry-After says
            seconds.append(time.perf_counter() - started_at)

    with ThreadPoolExecutor(len(keys)) as executor:
        sent = [executor.submit(send, key) for key in keys]
        try:
            yield seconds
        finally:
            is_over.set()
    for future in sent:
        future.result()


def post(server: RunningServer, key: str, content: bytes) -> int:
    connection = http.client.HTTPConnection(urlsplit(server.base_url).netloc)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    try:
        connection.request("POST", "/v2/payments/imports", content, headers)
        status, text = (response := connection.getresponse()).status, response.read()
    except (BrokenPipeError, ConnectionResetError):  # the service has refused a long body without reading it
        return http.client.TOO_MANY_REQUESTS
    finally:
        connection.close()
    if status not in {http.client.OK, http.client.TOO_MANY_REQUESTS}:
        raise RuntimeError(text)
    return status


def read_lists(server: RunningServer, seconds: float) -> dict[str, float]:
    """Read the first page at regular times. Each request has a new connection, so every worker gets some."""
    times, start = [], time.perf_counter()
    for number in range(round(seconds * READS_PER_SECOND)):
        time.sleep(max(0, start + number / READS_PER_SECOND - time.perf_counter()))
        with server.client() as client, timed() as elapsed:
            client.get("/v2/payments?limit=20")
        times.append(elapsed[0])
    return percentiles(times)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds) or [0]
    return {f"p{part}_ms": round(ordered[int((len(ordered) - 1) * part / 100)] * 1000, 1) for part in (50, 99)}


@contextmanager
def timed() -> Iterator[list[float]]:
    """Yield a list that gets the seconds of the block."""
    elapsed: list[float] = []
    started_at = time.perf_counter()
    yield elapsed
    elapsed.append(time.perf_counter() - started_at)
