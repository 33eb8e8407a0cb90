"""Limits are counted exactly, whoever counts at the same time, and forgotten in time."""

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from pytest_django import Settings

from payments.runtime import rate_limits
from payments.runtime.directory import prepare_runtime_directory
from payments.runtime.rate_limits import Counter, Counting, Limit, Usage

LIMIT = Limit(3, seconds=60)
NOW = 1_800_000_000.0


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Counter]:
    counter = Counter(tmp_path / "limits.sqlite3")
    with closing(counter):
        yield counter


def test_a_window_begins_with_its_first_event_and_ends_for_all_of_them(counter: Counter) -> None:
    moments = (NOW, NOW + 1, NOW + 59.5, NOW + 60, NOW + 61)

    assert [counter.count("a", LIMIT, now=moment) for moment in moments] == [
        Usage(2, 60),
        Usage(1, 59),
        Usage(0, 0.5),
        Usage(2, 60),
        Usage(1, 59),
    ]


def test_one_event_too_many_leaves_less_than_nothing(counter: Counter) -> None:
    assert [counter.count("a", LIMIT, now=NOW).remaining for _ in range(5)] == [2, 1, 0, -1, -2]


def test_names_are_counted_apart(counter: Counter) -> None:
    assert [counter.count(name, LIMIT, now=NOW).remaining for name in ("a", "b", "a", "\ud800", "A")] == [2, 2, 1, 2, 2]


def test_how_it_stands_is_told_without_an_event(counter: Counter) -> None:
    counter.count("a", LIMIT, now=NOW)

    assert [counter.find("a", LIMIT, now=NOW + 1) for _ in range(2)] == [Usage(2, 59)] * 2
    assert counter.find("b", LIMIT, now=NOW) == Usage(3, 0)


def test_a_clock_that_was_set_back_makes_no_window_longer(counter: Counter) -> None:
    counter.count("a", LIMIT, now=NOW)

    assert counter.count("a", LIMIT, now=NOW - 3600) == Usage(2, 60)


def test_a_request_that_waited_to_be_counted_does_not_restart_the_window(counter: Counter) -> None:
    """The request read the clock first, but a later request was counted first and began the window."""
    counter.count("a", LIMIT, now=NOW)

    assert counter.count("a", LIMIT, now=NOW - 0.5).remaining == LIMIT.events_max - 2
    assert counter.find("a", LIMIT, now=NOW - 0.5).remaining == LIMIT.events_max - 2


def test_what_has_ended_is_forgotten(counter: Counter) -> None:
    for number in range(1000):
        counter.count(f"address {number}", LIMIT, now=NOW)
    counter.count("later", LIMIT, now=NOW + 120)

    assert counter.connection.execute("SELECT count(*) FROM windows").fetchone() == (1,)


def test_names_are_not_stored(counter: Counter) -> None:
    counter.count("login 192.0.2.1 hunter2", LIMIT, now=NOW)

    assert "hunter2" not in "\n".join(counter.connection.iterdump())


class RacyCounter(Counter):
    """Looks, then writes: what a cache with `get` and `set` does."""

    def count(self, name: str, limit: Limit, *, now: float) -> Usage:
        usage = self.find(name, limit, now=now)
        time.sleep(0.001)
        events = limit.events_max - usage.remaining + 1
        self.connection.execute("REPLACE INTO windows VALUES (?, ?, ?)", [rate_limits.stored(name), now + 60, events])
        return Usage(limit.events_max - events, 60)


@pytest.mark.parametrize(("kind", "is_exact"), [(Counter, True), (RacyCounter, False)])
def test_of_those_who_count_at_the_same_time_exactly_as_many_are_let_through(
    tmp_path: Path, kind: type[Counter], is_exact: bool
) -> None:
    limit = Limit(100, seconds=3600)

    def count(_worker: int) -> int:
        counter = kind(tmp_path / "limits.sqlite3")
        with closing(counter):
            return sum(counter.count("a", limit, now=NOW).remaining >= 0 for _ in range(100))

    with ThreadPoolExecutor(4) as workers:
        let_through = sum(workers.map(count, range(4)))

    assert (let_through == limit.events_max) is is_exact


def test_where_counting_fails_nobody_is_kept_out(caplog: pytest.LogCaptureFixture) -> None:
    connection = rate_limits.counting.shared_counter().connection
    connection.execute("ALTER TABLE windows RENAME TO elsewhere")
    try:
        assert [rate_limits.count("a", Limit(1, seconds=60)) for _ in range(3)] == [Usage(1, 0)] * 3
    finally:
        connection.execute("ALTER TABLE elsewhere RENAME TO windows")

    (record,) = caplog.records
    assert record.getMessage() == "Limits are not kept: no such table: windows"


@pytest.fixture
def countings(tmp_path: Path, settings: Settings) -> Iterator[tuple[Counting, Counting]]:
    """Give what two processes count with."""
    settings.RUNTIME_DIRECTORY = tmp_path / "run"
    both = Counting(), Counting()
    yield both
    for each in both:
        each.close()


def count(counting: Counting, *, now: float = NOW) -> int:
    return counting.ask(Counter.count, "a", LIMIT, now=now).remaining


def test_a_file_that_is_damaged_is_replaced(countings: tuple[Counting, Counting]) -> None:
    (prepare_runtime_directory() / rate_limits.FILE_NAME).write_bytes(b"nonsense" * 1000)

    assert [count(countings[n]) for n in (0, 1, 0, 1)] == [3, 2, 1, 0]


def test_a_file_that_is_damaged_while_it_is_read_is_replaced(countings: tuple[Counting, Counting]) -> None:
    counted = [count(each) for each in countings]
    for file in prepare_runtime_directory().iterdir():
        file.write_bytes(b"nonsense" * 10_000)

    left = [count(each) for each in countings * 3]

    assert counted == [2, 1]
    assert left == [3, 2, 1, 0, -1, -2]


def test_a_file_that_was_cleared_away_is_missed_by_all(countings: tuple[Counting, Counting]) -> None:
    counted = [count(each) for each in countings]
    shutil.rmtree(prepare_runtime_directory())

    assert counted == [2, 1]
    assert [count(each) for each in countings * 2] == [2, 1, 0, -1]


def test_a_counter_that_fails_is_told_of_now_and_then(
    countings: tuple[Counting, Counting], caplog: pytest.LogCaptureFixture
) -> None:
    prepare_runtime_directory().chmod(0o755)

    left = [count(countings[0], now=NOW + seconds) for seconds in (0, 1, 59, 60, 61)]

    assert left == [LIMIT.events_max] * 5
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
