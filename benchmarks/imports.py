"""Imports over the API: records per second and response times, and the lists that clients read meanwhile."""

import http.client
import itertools
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
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
        with busy_processors():
            results["list_busy"] = read_lists(server, options.seconds)
        for clients, size in itertools.product(CLIENTS, SIZES):
            # Clients are processes: threads would make the measured lists wait for the interpreter.
            with ProcessPoolExecutor(clients) as executor, timed() as elapsed:
                jobs = [
                    executor.submit(send, server.base_url, key, templates, size, options.seconds)
                    for key in keys[:clients]
                ]
                lists = read_lists(server, options.seconds)
                seconds = [duration for job in jobs for duration in job.result()]
            results[f"{clients} clients, {size} records"] = {
                "records_per_second": round(size * len(seconds) / elapsed[0]),
                **percentiles(seconds),
                "list": lists,
            }
    return {"imports": results}


def body(templates: Sequence[bytes], size: int) -> bytes:
    """Return JSON Lines of new payments: the same ones with other IDs."""
    prefix = secrets.token_hex(8).encode()
    parts = enumerate(line.partition(b",")[2] for line in templates[:size])
    lines = (b'{"id":"pt_%s%d",%s' % (prefix, number, rest) for number, rest in parts)
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


def send(base_url: str, key: str, templates: Sequence[bytes], size: int, seconds: float) -> list[float]:
    """Send bodies one after the other for that long. Return the times of the imports."""
    times: list[float] = []
    ends_at = time.perf_counter() + seconds
    while (started_at := time.perf_counter()) < ends_at:
        content = body(templates, size)
        while post(base_url, key, content) == http.client.TOO_MANY_REQUESTS:
            time.sleep(1)  # as Retry-After says
        times.append(time.perf_counter() - started_at)
    return times


def post(base_url: str, key: str, content: bytes) -> int:
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc)
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


@contextmanager
def busy_processors() -> Iterator[None]:
    """Let another program compute on each processor. What lists take then is due to the machine, not to imports."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


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
