"""The systemd unit is valid and restricts the service."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import run_command
from tests.support.processes import ROOT

UNIT = ROOT / "deploy/payments.service"
DIRECTORY = re.compile(r"\b(?:State|Runtime)Directory\w*=\w+")
EXPOSURE_MAX_TENTHS = 11  # of 100

pytestmark = pytest.mark.once


def systemd_analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_command(["systemd-analyze", "--no-pager", *arguments], stdin=subprocess.DEVNULL)


def unit_for_this_checkout(directory: Path, text: str) -> Path:
    """Write the unit for this checkout: systemd verifies that the programs of a unit exist."""
    unit = directory / UNIT.name
    unit.write_text(text.replace("/opt/payments", str(ROOT)))
    return unit


@pytest.mark.processes
@pytest.mark.needs("systemd-analyze")
def test_unit_is_valid(tmp_path: Path) -> None:
    done = systemd_analyze("verify", "--man=no", unit_for_this_checkout(tmp_path, UNIT.read_text()))

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.processes
@pytest.mark.needs("systemd-analyze")
def test_invalid_unit_is_detected(tmp_path: Path) -> None:
    text = UNIT.read_text().replace("scripts/start", "scripts/begin").replace("ProtectHome=yes", "ProtectHomes=yes")

    done = systemd_analyze("verify", "--man=no", unit_for_this_checkout(tmp_path, text))

    assert done.returncode != 0
    assert "scripts/begin" in done.stderr
    assert "ProtectHomes" in done.stderr


def test_commands_get_the_directories_of_the_unit() -> None:
    """Without RuntimeDirectoryPreserve=yes, systemd would remove the service's directory when a command ends."""
    unit, manage = (set(DIRECTORY.findall(file.read_text())) for file in (UNIT, ROOT / "deploy/manage"))

    assert unit == manage
    assert "LimitCORE=0" in UNIT.read_text()
    assert {"RuntimeDirectoryMode=0700", "RuntimeDirectoryPreserve=yes"} < unit


@pytest.mark.processes
@pytest.mark.needs("systemd-analyze")
def test_unit_restricts_the_service() -> None:
    done = systemd_analyze("security", "--offline=yes", f"--threshold={EXPOSURE_MAX_TENTHS}", UNIT)

    assert done.returncode == 0, done.stdout


@pytest.mark.processes
@pytest.mark.needs("systemd-analyze")
def test_less_restricted_unit_is_detected(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("SystemCallFilter=~@privileged @resources\n", ""))

    done = systemd_analyze("security", "--offline=yes", f"--threshold={EXPOSURE_MAX_TENTHS}", unit)

    assert done.returncode != 0
