"""Byte locks exclude threads and processes, and end with the process that holds them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from payments.runtime.byte_locks import ByteLocks
from tests.support.processes import ROOT

FILE_NAME = "test.lock"
HIGHEST = 2**63 - 2

# Locks the bytes of its arguments until its input ends.
LOCK = """
import sys
from pathlib import Path
from django.conf import settings
from payments.runtime.byte_locks import ByteLocks
settings.configure(RUNTIME_DIRECTORY=Path(sys.argv[1]))
locks = ByteLocks(sys.argv[2])
print(*[locks.acquire(int(byte)) for byte in sys.argv[3:]], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def locks(directory: Path) -> ByteLocks:
    return ByteLocks(FILE_NAME)


@contextmanager
def process_that_locks(directory: Path, *numbers: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that holds these locks until the block ends."""
    command = [sys.executable, "-c", LOCK, str(directory), FILE_NAME, *map(str, numbers)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split() == [b"True"] * len(numbers)
        yield process


def test_lock_is_held_until_it_is_released(locks: ByteLocks) -> None:
    acquired = [locks.acquire(0), locks.acquire(0)]
    locks.release(0)

    assert [*acquired, locks.acquire(0)] == [True, False, True]


def test_locks_of_another_process_are_held(directory: Path, locks: ByteLocks) -> None:
    with process_that_locks(directory, 0, 2, HIGHEST):
        acquired = [locks.acquire(number) for number in (0, 1, 2, HIGHEST - 1, HIGHEST)]

    assert acquired == [False, True, False, True, False]


def test_released_lock_is_free_for_another_process(directory: Path, locks: ByteLocks) -> None:
    for number in (0, 1):
        locks.acquire(number)
    locks.release(1)

    with process_that_locks(directory, 1):
        assert not locks.acquire(1)


def test_locks_of_a_killed_process_are_free(directory: Path, locks: ByteLocks) -> None:
    with process_that_locks(directory, 0) as process:
        process.kill()

    assert locks.acquire(0)


def test_locks_hold_in_this_process_if_the_file_cannot_be_used(
    directory: Path, locks: ByteLocks, caplog: pytest.LogCaptureFixture
) -> None:
    directory.mkdir()
    directory.chmod(0o755)

    acquired = [locks.acquire(0), locks.acquire(0), locks.acquire(1)]
    locks.release(0)

    assert [*acquired, locks.acquire(0)] == [True, False, True, True]
    (message,) = caplog.messages
    assert message.startswith(f"The workers do not share test.lock: RUNTIME_DIRECTORY {directory} is accessible to")
