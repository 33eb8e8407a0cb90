"""A wait that takes too long is cut, another is not, and nothing is kept of threads that have ended."""

import gc
import subprocess
import sys
import threading
import time

from payments.runtime.deadlines import Line, Waits, Watch, Watchdog, watchdog
from tests.support.processes import ROOT


class Known(Line):
    """Tells when it was cut."""

    def __init__(self) -> None:
        self.was_cut = threading.Event()
        self.is_closed = False

    def cut(self) -> None:
        self.was_cut.set()

    def close(self) -> None:
        self.is_closed = True


def watch_over(line: Known, watchdog: Watchdog, *, seconds_max: float) -> Watch:
    watch = watchdog.new_watch(seconds_max=seconds_max)
    watch.keep(line)
    return watch


def test_a_wait_is_cut_when_its_time_is_over_and_not_before() -> None:
    watchdog = Watchdog()
    watchdog.start()
    lines = late_line, early_line = Known(), Known()
    late = watch_over(late_line, watchdog, seconds_max=0)
    early = watch_over(early_line, watchdog, seconds_max=60)

    with late, early:
        assert late_line.was_cut.wait(timeout=10)

    assert [line.was_cut.is_set() for line in lines] == [True, False]


def test_what_has_ended_in_time_is_left_alone() -> None:
    line = Known()
    watch = watch_over(line, Watchdog(), seconds_max=0)

    with watch:
        pass
    watch.cut_if_late(time.monotonic() + 60)

    assert not watch.is_on
    assert not line.was_cut.is_set()


def test_a_line_is_let_go_when_another_takes_its_place() -> None:
    first, second = Known(), Known()

    watch = watch_over(first, Watchdog(), seconds_max=1)
    watch.keep(second)

    assert (first.is_closed, second.is_closed) == (True, False)


FORKED = """
import os
from payments.runtime.deadlines import waits, watchdog

def is_looked_after():
    with waits.database:
        return watchdog.thread.is_alive()

assert is_looked_after()
child = os.fork()
if child == 0:
    os._exit(0 if is_looked_after() else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
"""


def test_a_process_that_was_forked_has_a_watchdog_of_its_own() -> None:
    """As workers have whose server loads the application before it begins them."""
    done = subprocess.run([sys.executable, "-c", FORKED], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_nothing_is_kept_of_threads_that_have_ended() -> None:
    waits = Waits()
    before = len(watchdog.watches)

    for _ in range(10):
        thread = threading.Thread(target=lambda: waits.database)
        thread.start()
        thread.join()
    gc.collect()

    assert len(watchdog.watches) == before


def test_a_line_that_cannot_be_cut_keeps_no_other_from_it() -> None:
    class Stubborn(Known):
        def cut(self) -> None:
            super().cut()
            raise ValueError("not this one")

    watchdog = Watchdog()
    watchdog.start()
    lines = stubborn_line, other_line = Stubborn(), Known()
    stubborn, other = (watch_over(line, watchdog, seconds_max=0) for line in lines)

    with stubborn:
        assert stubborn_line.was_cut.wait(timeout=10)
    with other:
        assert other_line.was_cut.wait(timeout=10)

    assert all(line.was_cut.is_set() for line in lines)


class Counted(Known):
    """One of two ways to what is wanted."""

    spare_seconds = 1

    def __init__(self, *, is_waited_on: bool) -> None:
        super().__init__()
        self.waiting = is_waited_on

    @property
    def is_waited_on(self) -> bool:
        return self.waiting


def test_time_is_spared_for_another_line_and_then_that_has_all_of_it() -> None:
    watch = Watchdog().new_watch(seconds_max=60)
    lines = first, second = Counted(is_waited_on=True), Counted(is_waited_on=False)
    for name, line in zip("ab", lines, strict=True):
        watch.keep(line, name=name)

    with watch:
        ends_at = time.monotonic() + watch.seconds_left
        cut = []
        for seconds_before_the_end in (1.5, 0.5, 0.4, -0.1):
            watch.cut_if_late(ends_at - seconds_before_the_end)
            cut.append([line.was_cut.is_set() for line in lines])
            first.waiting, second.waiting = not first.was_cut.is_set(), first.was_cut.is_set()

    assert cut == [[False, False], [True, False], [True, False], [True, True]]
