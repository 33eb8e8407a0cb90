"""Tests whose program is missing: the summary of scripts/test."""

import sys
from pathlib import Path

import pytest

from tests.support.commands import run_command
from tests.support.processes import ROOT
from tests.support.service import inherited_environment

pytestmark = [pytest.mark.once, pytest.mark.extended, pytest.mark.processes]


@pytest.mark.parametrize("workers", [0, 2])
def test_each_skipped_test_is_counted_once(workers: int, tmp_path: Path) -> None:
    skips = tmp_path / "skips"
    options = ("--numprocesses", str(workers), "-k", "copied_files", "--skips", skips)
    of_these_tests = ("PYTEST_", "TEST_", "REQUIRE_TEST_PROGRAMS")
    environment = {k: v for k, v in inherited_environment().items() if not k.startswith(of_these_tests)}

    done = run_command(
        [sys.executable, "-m", "pytest", "tests/deploy/test_image.py", *options],
        cwd=ROOT,
        env=environment | {"PATH": str(tmp_path)},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert skips.read_text() == "git is not installed (Debian: apt-get install git).\n"
