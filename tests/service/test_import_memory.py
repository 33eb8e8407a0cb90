"""Long bodies do not fill the memory of a worker."""

import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from payments.api.streams import BYTES_MAX, RECORDS_MAX
from payments.models import KeyScope
from tests.support.lines import CSV_CELLS, line
from tests.support.migrated import fresh_database
from tests.support.scale import report, times
from tests.support.service import Service, workers
from tests.support.tools import needs_linux
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.once("postgresql"), pytest.mark.processes, pytest.mark.extended, needs_linux]

IMPORTS = "/v2/payments/imports"
JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
CLIENTS = 8
FINISHED = times(4, long=40)  # imports of a body, all clients together
FINISHED_SECONDS_MAX = 300
MEMORY_MB_MAX = 150
RECORD_BYTES = 1600


def records(text: str) -> Iterator[bytes]:
    """Yield as many records as a body may have."""
    texts = {"text": text * (RECORD_BYTES // 2 // len(text.encode()))}
    size = BYTES_MAX // (len(line(id="pt_10000", metadata=texts)) + 1)
    return (line(id=f"pt_{number}", metadata=texts) for number in range(min(size, RECORDS_MAX)))


def rows() -> bytes:
    cells = {"metadata": json.dumps(json.dumps({"text": "x" * (RECORD_BYTES - 200)})).replace("\\", '"')}
    header = ",".join([*CSV_CELLS, "metadata"])
    lines = (",".join([*(CSV_CELLS | {"id": f"pt_{n}"}).values(), cells["metadata"]]) for n in range(RECORDS_MAX))
    return "\n".join([header, *lines]).encode()


BODIES: dict[str, tuple[Callable[[], bytes], str]] = {
    "lines": (lambda: b"\n".join(records("x")), LINES),
    "multi-byte lines": (lambda: b"\n".join(records("\U0001f600")), LINES),
    "wide lines": (lambda: b"\n".join(records("x" * 790 + "\U0001f600")), LINES),
    "gzip": (lambda: gzip.compress(b"\n".join(records("x"))), LINES),
    "array": (lambda: b"[" + b",".join(records("x")) + b"]", JSON),
    "page": (lambda: b'{"_embedded":{"payments":[' + b",".join(list(records("x"))[:-1]) + b"]}}", JSON),
    "CSV": (rows, CSV),
    "invalid lines": (lambda: b"\n".join(record.replace(b"live", b"prod") for record in records("x")), LINES),
    "blank lines": (lambda: b"\n" * BYTES_MAX, LINES),
    "small values": (lambda: b'{"metadata":[' + b"1," * (BYTES_MAX // 2 - 10) + b"1]}", JSON),
    "brackets": (lambda: b"[" * BYTES_MAX, JSON),
    "one line": (lambda: b'{"a":' + b"[" * (BYTES_MAX - 5), LINES),
    "columns": (lambda: b"id," + b"a," * (BYTES_MAX // 2 - 2), CSV),
}


@pytest.mark.parametrize(("make", "media_type"), BODIES.values(), ids=BODIES)
def test_worker_needs_little_memory(
    make: Callable[[], bytes], media_type: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    body = make()
    headers = {"Content-Type": media_type, **({"Content-Encoding": "gzip"} if body.startswith(b"\x1f\x8b") else {})}
    assert len(body) <= BYTES_MAX
    statuses: Counter[int] = Counter()
    with fresh_database(tmp_path) as url, Service(url, log=tmp_path / "log").serving() as service:
        service.create_organization(1)
        keys = [service.create_api_key(organization=1, scope=KeyScope.IMPORT) for _ in range(CLIENTS)]
        (worker,) = workers(service)
        stopped = threading.Event()
        clients = [threading.Thread(target=send, args=[service, key, body, headers, statuses, stopped]) for key in keys]
        for client in clients:
            client.start()
        try:
            wait_until(lambda: statuses.total() - statuses[429] >= FINISHED, seconds_max=FINISHED_SECONDS_MAX)
        finally:
            stopped.set()
            for client in clients:
                client.join()
        megabytes = peak_megabytes(worker)

    report(f"{request.node.callspec.id}: {megabytes:.0f} MB, {dict(statuses)}")
    assert megabytes < MEMORY_MB_MAX
    assert set(statuses) <= {200, 400, 422, 429}


def send(  # noqa: PLR0913, PLR0917  a thread
    service: Service,
    key: str,
    body: bytes,
    headers: dict[str, str],
    statuses: Counter[int],
    stopped: threading.Event,
) -> None:
    while not stopped.wait(0.02):
        connection = HTTPConnection("127.0.0.1", service.port)
        with suppress(OSError):  # the server may respond before it has read the body
            connection.request("POST", IMPORTS, body, headers | {"Authorization": f"Bearer {key}"})
        with suppress(OSError):
            statuses[connection.getresponse().status] += 1
        connection.close()


def peak_megabytes(process: psutil.Process) -> float:
    (line,) = (text for text in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmHWM" in text)
    return int(line.split()[1]) / 1024
