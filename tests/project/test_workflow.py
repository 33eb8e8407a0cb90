"""Checks that run elsewhere: before a commit, and at a code host."""

import sys
from pathlib import Path

import pytest

from tests.support.commands import output_of
from tests.support.processes import ROOT

pytestmark = [pytest.mark.once, pytest.mark.processes]

BIN = Path(sys.executable).parent
WORKFLOW = ROOT / ".github/workflows/tests.yml"
HOOKS = ROOT / ".pre-commit-config.yaml"


@pytest.mark.extended
def test_workflow_has_valid_syntax() -> None:
    output_of([BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOW])


def test_workflow_runs_scripts_of_this_project() -> None:
    commands = [line.partition("command: ")[2].rstrip("}") for line in WORKFLOW.read_text().splitlines()]

    assert [command for command in commands if command] == [".ci/run", "scripts/test"]
    assert all((ROOT / command).stat().st_mode & 0o100 for command in commands if command)


def test_hooks_before_a_commit_are_valid() -> None:
    output_of([BIN / "pre-commit", "validate-config", HOOKS])


@pytest.mark.parametrize("argument", ["--style", "--types"])
def test_hooks_run_what_the_tests_lint(argument: str) -> None:
    assert f"entry: scripts/lint {argument}\n" in HOOKS.read_text()
    assert f"scripts/lint {argument}" in (ROOT / "scripts/test").read_text()
