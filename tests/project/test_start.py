"""scripts/start checks what the service needs. If something is wrong, one line says what to do."""

import subprocess
from pathlib import Path

import pytest

from tests.support.commands import run_command
from tests.support.processes import ROOT
from tests.support.service import Service


def start(directory: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    service = Service(
        f"sqlite:///{directory}/payments.sqlite3", settings={"RUNTIME_DIRECTORY": str(directory / "run"), **settings}
    )
    return run_command([ROOT / "scripts/start"], cwd=ROOT, env=service.environment)


def test_directory_accessible_to_others_stops_the_start(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    directory.chmod(0o755)

    done = start(tmp_path)

    assert done.returncode == 1
    assert done.stderr == (
        f"CommandError: RUNTIME_DIRECTORY {directory} is accessible to other users. Run: chmod 700 {directory}\n"
    )


def test_damaged_rate_limit_file_stops_the_start(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    (directory / "limits.sqlite3").write_bytes(b"nonsense" * 1000)

    done = start(tmp_path)

    assert done.returncode == 1
    assert done.stderr == (
        f"CommandError: Cannot open {directory}/limits.sqlite3: file is not a database."
        " If the file is damaged, remove it.\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("HSTS_SECONDS", "-1", "Invalid settings. HSTS_SECONDS: Must be a whole number of seconds"),
        ("PORT", "0", "PORT must be a whole number from 1 to 65535."),
        ("WEB_THREADS", "101", "WEB_THREADS must be a whole number from 1 to 100."),
        ("WEB_WORKERS", "x", "WEB_WORKERS must be a whole number from 1 to 1000."),
    ],
)
def test_invalid_setting_stops_the_start(tmp_path: Path, name: str, value: str, message: str) -> None:
    done = start(tmp_path, **{name: value})

    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1
