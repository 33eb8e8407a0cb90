"""Programs that only long runs need. A long run installs those that are missing."""

import os
import sys
from pathlib import Path
from typing import Final

from tests.support.commands import output_of, run_command

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "payments-long-run"


def install_debian(*packages: str) -> None:
    """Install Debian packages that are missing."""
    if run_command(["dpkg", "--status", *packages]).returncode:
        output_of(["apt-get", "update"])
        command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
        output_of(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def install_python(name: str, *packages: str) -> Path:
    """Install packages from PyPI in an environment of this name. Return the directory of its programs."""
    programs = CACHE / name / "bin"
    if not programs.exists():
        output_of([sys.executable, "-m", "venv", programs.parent])
    output_of([programs / "python", "-m", "pip", "install", "--quiet", *packages])
    return programs
