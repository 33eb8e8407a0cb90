"""Each worker stays on a processor, if there are as many workers as processors."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from payments.runtime import processors as module
from payments.runtime.byte_locks import ByteLocks
from payments.runtime.processors import FILE_NAME, keep_processor, usable_processors
from tests.support.processes import ROOT

# A worker with an older thread. It prints its processor and those of all of its threads, and runs until its input ends.
WORK = """
import os, sys, threading
from pathlib import Path
from django.conf import settings
from payments.runtime.byte_locks import ByteLocks
from payments.runtime.processors import FILE_NAME, keep_processor
settings.configure(RUNTIME_DIRECTORY=Path(sys.argv[1]))
threading.Thread(target=threading.Event().wait, daemon=True).start()
kept = keep_processor(ByteLocks(FILE_NAME), workers=int(sys.argv[2]))
threading.Thread(target=threading.Event().wait, daemon=True).start()
used = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
print(kept, *sorted(set.union(*used)), flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(not usable_processors(), reason="Only Linux tells which processors are usable.")


def started_workers(stack: ExitStack, directory: Path, *, number: int, workers: int) -> list[list[str]]:
    """Start processes until the stack ends, and return what each prints."""
    lines = []
    for _ in range(number):
        command = [sys.executable, "-c", WORK, str(directory), str(workers)]
        process = stack.enter_context(
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert process.stdout is not None
        lines.append(process.stdout.readline().split())
    return lines


def test_workers_are_spread_over_the_processors(directory: Path) -> None:
    processors = [str(processor) for processor in usable_processors()]
    with ExitStack() as stack:
        lines = started_workers(stack, directory, number=len(processors), workers=len(processors))

    assert lines == [[processor, processor] for processor in processors]


def test_new_workers_of_a_reload_are_spread_too(directory: Path) -> None:
    processors = [str(processor) for processor in usable_processors()]
    workers = len(processors)
    with ExitStack() as stack:
        with ExitStack() as old:
            started_workers(old, directory, number=workers, workers=workers)
            during = started_workers(stack, directory, number=workers, workers=workers)
        after = started_workers(stack, directory, number=workers, workers=workers)

    assert [line[0] for line in during] == [line[0] for line in after] == processors


def test_more_workers_than_processors_share_them(directory: Path) -> None:
    processors = [str(processor) for processor in usable_processors()]
    workers = 2 * len(processors)
    with ExitStack() as stack:
        lines = started_workers(stack, directory, number=workers, workers=workers)

    assert [line[0] for line in lines] == processors * 2


def test_kernel_chooses_for_fewer_workers_than_processors(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_processors", lambda: [0, 1, 2])

    assert keep_processor(ByteLocks(FILE_NAME), workers=2) is None


def test_kernel_chooses_if_workers_share_no_file(directory: Path) -> None:
    """All workers would choose the same processor."""
    directory.mkdir(mode=0o755)
    before = os.sched_getaffinity(0)

    assert keep_processor(ByteLocks(FILE_NAME), workers=len(before)) is None
    assert os.sched_getaffinity(0) == before
