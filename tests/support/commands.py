"""Runs programs to their end, and commands of manage.py in this process."""

import subprocess
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any

from django.test import override_settings

from payments.management.running import run
from tests.support.connecting import connected_to


def run_command(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Return the exit status and the output of a command, whether it succeeds or fails."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def output_of(command: Sequence[str | Path], **options: Any) -> str:
    """Return the standard output of a command that must succeed."""
    process = run_command(command, **options)
    assert process.returncode == 0, process.stderr
    return process.stdout


def manage(*arguments: str, url: str, stdout: IO[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of manage.py on the database at `url`. Return its exit status and its output.

    It runs in this process, because another one takes a second to load Django. It has the settings of the tests.
    """
    output, messages = TextIOWrapper(BytesIO()), StringIO()
    with (
        connected_to(url),
        override_settings(LOGGING_CONFIG=None),  # otherwise, Django replaces the handlers of the tests
        redirect_stdout(stdout or output),
        redirect_stderr(messages),
    ):
        status = exit_status("manage.py", *arguments)
    output.seek(0)
    return subprocess.CompletedProcess(arguments, status, output.read(), messages.getvalue())


def exit_status(*arguments: str) -> int:
    """Run a command of manage.py. Return the exit status of a process that runs it."""
    try:
        run([*arguments])
    except SystemExit as error:
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
            return 1
        return error.code or 0
    except Exception:  # noqa: BLE001  Python prints any exception
        traceback.print_exc()
        return 1
    return 0
