"""A client's filters have one place in a process, and a few on the machine."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from payments.runtime import filter_places
from payments.runtime.filter_places import LOCKS_MAX, FilterPlaces, first_lock
from payments.runtime.shares import NoPlace
from tests.support.processes import ROOT
from tests.support.waiting import SECONDS_MAX, wait_until

PROCESSES, READS = 3, 30

# Reads of one client in two threads. Each read occupies a file of its own; their number is printed.
READ = """
import sys, time, uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from django.conf import settings
from payments.runtime import filter_places
from payments.runtime.filter_places import FilterPlaces
directory, on_machine, reads = Path(sys.argv[1]), *map(int, sys.argv[2:])
settings.configure(RUNTIME_DIRECTORY=directory)
filter_places.WAIT_SECONDS_MAX = 60
places = FilterPlaces(on_machine=on_machine, waiting_max=1)

def read(_thread):
    most = 0
    for _ in range(reads):
        places.wait("a")
        file = directory / f"read-{uuid.uuid4()}"
        file.touch()
        most = max(most, len(list(directory.glob("read-*"))))
        time.sleep(0.001)
        file.unlink()
        places.release("a")
    return most

with ThreadPoolExecutor() as pool:
    print(max(pool.map(read, range(2))))
"""

# Holds a place until its input ends.
HOLD = """
import sys
from pathlib import Path
from django.conf import settings
from payments.runtime.filter_places import FilterPlaces
settings.configure(RUNTIME_DIRECTORY=Path(sys.argv[1]))
print(FilterPlaces(on_machine=1, waiting_max=1).acquire("a"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def places(directory: Path) -> FilterPlaces:
    return FilterPlaces(on_machine=1, waiting_max=1)


@contextmanager
def process_that_reads(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLD, str(directory)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"True\n"
        yield process


@pytest.mark.parametrize("on_machine", [1, 2])
def test_no_more_reads_than_places_on_the_machine(directory: Path, on_machine: int) -> None:
    directory.mkdir(mode=0o700)
    command = [sys.executable, "-c", READ, str(directory), str(on_machine), str(READS)]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)) for _ in range(PROCESSES)
        ]
        most = [int(process.communicate()[0] or 0) for process in processes]

    assert max(most) == on_machine


def test_each_client_has_its_place(places: FilterPlaces) -> None:
    assert [places.acquire(name) for name in "aab"] == [True, False, True]

    places.release("a")

    assert [places.acquire(name) for name in "ab"] == [True, False]


def test_place_of_another_process_is_occupied(directory: Path, places: FilterPlaces) -> None:
    with process_that_reads(directory):
        assert not places.acquire("a")
        assert places.acquire("b")

    assert places.acquire("a")


def test_read_waits_for_a_place_of_another_process(
    directory: Path, places: FilterPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_places, "WAIT_SECONDS_MAX", SECONDS_MAX)
    with ThreadPoolExecutor() as pool, process_that_reads(directory) as other:
        waiting = pool.submit(places.wait, "a")
        next_place = first_lock("a") + 1
        wait_until(lambda: next_place in places.locks.held)
        assert not places.held

        other.communicate()
        waiting.result(timeout=SECONDS_MAX)

    assert places.held == {"a": first_lock("a")}
    assert places.locks.held == {first_lock("a")}


def test_read_that_gets_no_place_leaves_nothing_occupied(
    directory: Path, places: FilterPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_places, "WAIT_SECONDS_MAX", 0.01)
    with process_that_reads(directory), pytest.raises(NoPlace):
        places.wait("a")

    assert not places.locks.held
    assert not places.in_process.running


def test_clients_have_locks_of_their_own() -> None:
    assert abs(first_lock((1, "live")) - first_lock((1, "test"))) >= LOCKS_MAX
    assert max(first_lock(name) for name in range(1000)) + LOCKS_MAX < 2**63
