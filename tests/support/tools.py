"""Programs that some tests need and that requirements/dev.txt does not contain.

If a program is missing, its tests are skipped. With REQUIRE_TEST_PROGRAMS=true, they fail.
"""

import os
import shutil
import sys
from typing import Final

import pytest

# The Debian package that has each program.
PACKAGES: Final = {
    "caddy": "caddy",
    "chromium-headless-shell": "chromium-headless-shell",
    "curl": "curl",
    "git": "git",
    "go": "golang-go",
    "jq": "jq",
    "nginx": "nginx",
    "openssl": "openssl",
    "pgbouncer": "pgbouncer",
    "php": "php-cli",
    "promtool": "prometheus",
    "systemd-analyze": "systemd",
    "wrk": "wrk",
}

# The commands that install the other programs.
COMMANDS: Final = {
    **dict.fromkeys(("caddy-current", "nginx-current"), ".ci/proxies"),
    "node": "scripts/install --dev",
    "source-declarative-manifest": ".ci/airbyte",
}

# For tests of /dev/full, /proc or setpriv.
needs_linux: Final = pytest.mark.skipif(sys.platform != "linux", reason="This test needs Linux.")


def first_installed(*programs: str) -> str | None:
    """Return the path of the first of these programs that is installed; None without any."""
    return next(filter(None, map(shutil.which, programs)), None)


def require(program: str, *alternatives: str) -> None:
    """Skip the test unless the program or an alternative is installed. With REQUIRE_TEST_PROGRAMS=true, fail it."""
    if first_installed(program, *alternatives) is None:
        command = COMMANDS.get(program) or f"Debian: apt-get install {PACKAGES[program]}"
        unavailable(f"{program} is not installed ({command}).")


def unavailable(reason: str) -> None:
    """Skip the test because of this machine. With REQUIRE_TEST_PROGRAMS=true, fail it."""
    if os.environ.get("REQUIRE_TEST_PROGRAMS") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
