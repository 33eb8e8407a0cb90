"""The number of workers follows from what the process may use, not from what the machine has."""

import os
from pathlib import Path

import pytest

from payments_site.processors import usable_processors
from tests.support.commands import output_of
from tests.support.processes import ROOT
from tests.support.tools import needs_linux

pytestmark = pytest.mark.once

MANY = 10**6


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The control groups of a machine with many processors, on which this process is in the group `a/b`."""
    (tmp_path / "groups/a/b").mkdir(parents=True)
    (tmp_path / "own").write_text("1:cpu:/elsewhere\n0::/a/b\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: range(MANY))
    return tmp_path / "groups"


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, MANY),
        ({"a/b": "max 100000"}, MANY),
        ({"a/b": "200000 100000"}, 2),
        ({"a/b": "150000 100000"}, 2),
        ({"a/b": "10000 100000"}, 1),
        ({"a/b": "max 100000", "a": "300000 100000"}, 3),
        ({"a/b": "800000 100000", ".": "100000 50000"}, 2),
    ],
)
def test_smallest_limit_of_the_control_groups_counts(groups: Path, limits: dict[str, str], expected: int) -> None:
    for group, limit in limits.items():
        (groups / group / "cpu.max").write_text(f"{limit}\n")

    assert usable_processors(own_group=groups.with_name("own"), groups=groups) == expected


def test_system_without_control_groups_has_only_its_affinity(groups: Path) -> None:
    assert usable_processors(own_group=groups / "missing", groups=groups) == MANY


@needs_linux
@pytest.mark.processes
def test_affinity_of_a_process_counts() -> None:
    processor = min(os.sched_getaffinity(0))
    program = f"import os; os.sched_setaffinity(0, {{{processor}}}); "
    program += "from payments_site.processors import usable_processors; print(usable_processors())"

    assert output_of([ROOT / ".venv/bin/python", "-c", program], cwd=ROOT) == "1\n"
