"""Keeps each worker on one processor.

Only one thread of a worker runs Python at a time. If the kernel moves the threads between processors, they often find
nothing in the processor's caches, and waking up another processor takes long, most of all on virtual machines.
"""

import os
from contextlib import suppress
from pathlib import Path

from payments.runtime.byte_locks import ByteLocks

FILE_NAME = "processors.lock"

TASKS = Path("/proc/self/task")  # the threads of this process


def keep_processor(locks: ByteLocks, *, workers: int) -> int | None:
    """Keep this process on a processor, and return its number. The workers are spread evenly over the processors.

    With fewer workers than processors, the kernel chooses: other services may need the same processors. A lock stands
    for a worker's place, for as long as the process runs. There are two rows of locks, because old and new workers run
    side by side during a reload.
    """
    processors = usable_processors()
    if not processors or workers < len(processors):
        return None
    for number in range(2 * workers):
        if locks.acquire(number):
            if locks.has_warned:  # all workers would choose the same processor
                return None
            processor = processors[number % workers % len(processors)]
            pin(processor)
            return processor
    return None


def usable_processors() -> list[int]:
    """Return the processors that this process may use; empty if the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def pin(processor: int) -> None:
    """Keep all threads of this process on a processor. New threads inherit this."""
    for task in TASKS.iterdir():
        with suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(int(task.name), {processor})
