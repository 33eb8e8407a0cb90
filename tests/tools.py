"""Programs that are not Python packages, which some tests use.

Where a program is missing, its tests are skipped. In CI, which installs all of them, its tests fail.
"""

import os
import shutil
from typing import Final

import pytest

# The Debian package that has each program.
PACKAGES: Final = {
    "caddy": "caddy",
    "chromium": "chromium",
    "chromium-headless-shell": "chromium-headless-shell",
    "curl": "curl",
    "nginx": "nginx",
    "node": "nodejs",
    "openssl": "openssl",
    "pgbouncer": "pgbouncer",
    "php": "php-cli",
    "promtool": "prometheus",
    "systemd-analyze": "systemd",
}


def require(program: str, *others: str) -> None:
    """Skip the test unless the program, or another that does the same, is installed; in CI, fail it."""
    if not any(map(shutil.which, (program, *others))):
        unavailable(f"{program} is not installed (Debian: apt-get install {PACKAGES[program]}).")


def unavailable(reason: str) -> None:
    """Skip the test because of this machine; in CI, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
