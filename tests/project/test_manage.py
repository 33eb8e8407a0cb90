"""manage.py started by a Python that cannot run it: one line says what to do."""

import ast
import subprocess
import sys

import pytest

from tests.support.commands import run_command
from tests.support.processes import ROOT

pytestmark = pytest.mark.once

FILE = ROOT / "manage.py"
NEXT_STEP = "Run scripts/install, then .venv/bin/python manage.py."


def run_as(**attributes: object) -> subprocess.CompletedProcess[str]:
    """Run manage.py in a Python whose module `sys` has other attributes."""
    program = f"import runpy, sys; vars(sys).update({attributes}); runpy.run_path('manage.py', run_name='__main__')"
    return run_command([sys.executable, "-c", program], cwd=ROOT)


@pytest.mark.parametrize("version", [(3, 7), (3, 8), (3, 9), (3, 10)])
def test_old_python_can_parse_the_file(version: tuple[int, int]) -> None:
    assert ast.parse(FILE.read_text(), feature_version=version).body


def test_syntax_of_a_newer_python_is_detected() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("try:\n    pass\nexcept* ValueError:\n    pass\n", feature_version=(3, 10))


@pytest.mark.processes
@pytest.mark.parametrize(("version", "name"), [((3, 10, 13), "3.10"), ((3, 7, 0), "3.7")])
def test_old_python_is_refused_in_one_line(version: tuple[int, ...], name: str) -> None:
    done = run_as(version_info=version)

    assert done.returncode == 1
    assert done.stderr == f"Python {name} is too old: 3.11 or newer is necessary. {NEXT_STEP}\n"


@pytest.mark.processes
def test_windows_is_refused_in_one_line() -> None:
    done = run_as(platform="win32")

    assert done.returncode == 1
    assert done.stderr == "This service needs Linux or macOS. On Windows, run it in WSL.\n"


@pytest.mark.processes
def test_missing_packages_lead_to_the_installation() -> None:
    done = run_command([sys.executable, "-S", "manage.py", "check"], cwd=ROOT)

    assert done.returncode == 1
    assert done.stderr == f"Python cannot find the module django. {NEXT_STEP}\n"


@pytest.mark.processes
def test_missing_package_keeps_its_traceback_with_the_option() -> None:
    done = run_command([sys.executable, "-S", "manage.py", "check", "--traceback"], cwd=ROOT)

    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n")
