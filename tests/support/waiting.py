"""Waits until a condition holds."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

# Only a failing test waits this long. No test depends on the speed of the machine.
SECONDS_MAX = 120


def wait_until(
    condition: Callable[[], Result],
    *,
    seconds_max: float = SECONDS_MAX,
    poll_seconds: float = 0.05,
    explain: Callable[[], object] = str,
) -> Result:
    """Return the first true result of the condition.

    Fail after `seconds_max`, with the message that `explain` returns.
    """
    end = time.monotonic() + seconds_max
    while not (result := condition()):
        assert time.monotonic() < end, explain()
        time.sleep(poll_seconds)
    return result
