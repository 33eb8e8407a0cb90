"""Runs programs to their end."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run_command(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Return the exit status and the output of a command, whether it succeeds or fails."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def output_of(command: Sequence[str | Path], **options: Any) -> str:
    """Return the standard output of a command that must succeed."""
    process = run_command(command, **options)
    assert process.returncode == 0, process.stderr
    return process.stdout
