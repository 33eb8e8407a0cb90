"""Rate limits count exactly, also in several processes, and forget ended windows."""

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from pytest_django import Settings

from payments.runtime.directory import RuntimeDirectoryError
from payments.runtime.rate_limits import FILE_NAME, SWEEP_INTERVAL_SECONDS, RateLimit, RateLimits, Usage, hash_name

pytestmark = pytest.mark.once

LIMIT = RateLimit(3, seconds=60)
START = 1_800_000_000.0


@dataclass
class Clock:
    """A clock that the test sets."""

    now: float = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def directory(tmp_path: Path, settings: Settings) -> Path:
    settings.PAYMENTS_RUNTIME_DIRECTORY = directory = tmp_path / "run"
    return directory


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limits(directory: Path, clock: Clock) -> Iterator[RateLimits]:
    with closing(RateLimits(clock)) as limits:
        yield limits


def count_at(limits: RateLimits, clock: Clock, now: float) -> Usage:
    clock.now = now
    return limits.count("a", LIMIT)


def test_window_starts_with_its_first_event(limits: RateLimits, clock: Clock) -> None:
    moments = (START, START + 1, START + 59.5, START + 60, START + 61)

    assert [count_at(limits, clock, moment) for moment in moments] == [
        Usage(2, 60),
        Usage(1, 59),
        Usage(0, 0.5),
        Usage(2, 60),
        Usage(1, 59),
    ]


def test_exceeded_limit_has_a_negative_remainder(limits: RateLimits) -> None:
    usages = [limits.count("a", LIMIT) for _ in range(5)]

    assert [usage.remaining for usage in usages] == [2, 1, 0, -1, -2]
    assert [usage.wait_seconds for usage in usages] == [0, 0, 0, 60, 60]


def test_exceeded_limit_is_remembered_until_its_window_ends(limits: RateLimits, clock: Clock) -> None:
    count_at(limits, clock, START)
    for _ in range(2):
        limits.count("a", LIMIT)
    within = limits.is_exceeded("a")
    limits.count("a", LIMIT)
    beyond = (limits.is_exceeded("a"), limits.is_exceeded("b"))
    clock.now = START + 60
    later = limits.is_exceeded("a")

    assert (within, beyond, later) == (False, (True, False), False)


def test_exceeded_limits_of_ended_windows_are_forgotten(limits: RateLimits, clock: Clock) -> None:
    for number in range(100):
        clock.now = START + number * (LIMIT.seconds + SWEEP_INTERVAL_SECONDS)
        for _ in range(LIMIT.events_max + 1):
            limits.count(str(number), LIMIT)

    assert len(limits.exceeded) == 1


def test_counts_continue_after_the_file_was_closed(limits: RateLimits, caplog: pytest.LogCaptureFixture) -> None:
    limits.count("a", LIMIT)
    limits.close()

    assert limits.count("a", LIMIT).remaining == 1
    assert caplog.messages == []


def test_names_are_counted_separately(limits: RateLimits) -> None:
    names = ("a", "b", "a", "\ud800", "A")

    assert [limits.count(name, LIMIT).remaining for name in names] == [2, 2, 1, 2, 2]


def test_clock_that_is_set_back_does_not_extend_a_window(limits: RateLimits, clock: Clock) -> None:
    count_at(limits, clock, START)

    assert count_at(limits, clock, START - 3600) == Usage(2, 60)


def test_late_event_does_not_restart_the_window(limits: RateLimits, clock: Clock) -> None:
    """The request read the clock first, but a later request was counted first and started the window."""
    count_at(limits, clock, START)

    assert count_at(limits, clock, START - 0.5).remaining == LIMIT.events_max - 2


def test_ended_windows_are_deleted(limits: RateLimits, clock: Clock) -> None:
    for number in range(1000):
        limits.count(f"address {number}", LIMIT)
    count_at(limits, clock, START + 120)

    assert limits.open().execute("SELECT count(*) FROM windows").fetchone() == (1,)


def test_names_are_stored_as_hashes(limits: RateLimits) -> None:
    limits.count("login 192.0.2.1 hunter2", LIMIT)

    assert "hunter2" not in "\n".join(limits.open().iterdump())


class RacyRateLimits(RateLimits):
    """Reads, then writes, as a cache with `get` and `set` does."""

    def count_event(self, name: str, limit: RateLimit, *, now: float) -> Usage:
        rows = self.open().execute("SELECT events FROM windows").fetchall()
        time.sleep(0.001)
        events = rows[0][0] + 1 if rows else 1
        self.open().execute("REPLACE INTO windows VALUES (?, ?, ?)", [hash_name(name), now + limit.seconds, events])
        return Usage(limit.events_max - events, limit.seconds)


@pytest.mark.parametrize(("kind", "is_exact"), [(RateLimits, True), (RacyRateLimits, False)])
def test_concurrent_counts_are_exact(directory: Path, kind: type[RateLimits], is_exact: bool) -> None:
    limit = RateLimit(100, seconds=3600)

    def count_allowed(_worker: int) -> int:
        with closing(kind(Clock())) as limits:
            return sum(limits.count("a", limit).remaining >= 0 for _ in range(100))

    with ThreadPoolExecutor(4) as workers:
        allowed = sum(workers.map(count_allowed, range(4)))

    assert (allowed == limit.events_max) is is_exact


def test_threads_that_count_at_once_share_one_connection(limits: RateLimits, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Barrier(2, timeout=0.2)
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connect_slowly(*arguments: Any, **options: Any) -> sqlite3.Connection:
        with suppress(BrokenBarrierError):  # unless one thread waits for the other
            both.wait()
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr("sqlite3.connect", connect_slowly)
    with ThreadPoolExecutor(2) as pool:
        remaining = [usage.remaining for usage in pool.map(lambda _: limits.count("a", LIMIT), range(2))]

    assert sorted(remaining) == [1, 2]
    assert opened == [limits.open()]


def test_full_file_allows_requests(limits: RateLimits, caplog: pytest.LogCaptureFixture) -> None:
    limits.open().execute("PRAGMA max_page_count = 2")

    usages = [limits.count(f"address {number}", RateLimit(1, seconds=60)) for number in range(200)]

    assert usages[0] == Usage(0, 60)
    assert usages[-1] == Usage(1, 0)
    assert {record.getMessage() for record in caplog.records} == {"Rate limiting is disabled: database or disk is full"}


def test_damaged_file_allows_requests(directory: Path, limits: RateLimits, caplog: pytest.LogCaptureFixture) -> None:
    directory.mkdir(mode=0o700)
    (directory / FILE_NAME).write_bytes(b"nonsense" * 1000)

    assert limits.count("a", LIMIT) == Usage(3, 0)
    assert [record.getMessage() for record in caplog.records] == ["Rate limiting is disabled: file is not a database"]


def test_directory_accessible_to_others_is_not_opened(directory: Path, limits: RateLimits) -> None:
    directory.mkdir()
    directory.chmod(0o755)

    with pytest.raises(RuntimeDirectoryError):
        limits.open()
