"""Events of several threads begin one after the other."""

import threading
import time

from payments.runtime.pace import Pace

INTERVAL_SECONDS = 0.02


def test_events_begin_at_least_an_interval_apart() -> None:
    pace = Pace(INTERVAL_SECONDS)
    started_at = time.monotonic()

    threads = [threading.Thread(target=pace.wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert time.monotonic() - started_at >= 4 * INTERVAL_SECONDS


def test_event_after_a_pause_begins_at_once() -> None:
    pace = Pace(60)
    pace.next_at = time.monotonic() - 1

    pace.wait()  # it would otherwise take a minute

    assert pace.next_at > time.monotonic() + 30
