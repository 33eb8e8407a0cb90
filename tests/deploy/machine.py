"""A new Debian system, which debootstrap creates and systemd-nspawn runs. Only long runs use it."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.support.processes import ROOT
from tests.support.waiting import wait_until

SUITE = "trixie"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
POLL_SECONDS = 0.2

NEEDED = {"debootstrap": "debootstrap", "systemd-nspawn": "systemd-container", "nsenter": "util-linux"}

# Variables that tell pip where to find packages and which certificates to trust.
PIP_VARIABLE = re.compile(r"PIP_\w+|SSL_CERT_FILE|(?:https?|no)_proxy", re.IGNORECASE | re.ASCII)
PATH = re.compile(r"(?:file://|(?<![\w/.:]))(/[\w./-]+)")


def why_not() -> str:
    """Return why this computer cannot create a machine; an empty text if it can."""
    if os.geteuid() != 0:
        return "Creating a machine needs root."
    missing = [package for command, package in NEEDED.items() if shutil.which(command) is None]
    return f"apt-get install {' '.join(missing)}" if missing else ""


@dataclass
class Machine:
    """A directory that contains a complete system."""

    root: Path
    leader: psutil.Process | None = field(default=None, init=False)  # its first process, while it runs

    @classmethod
    def create(cls, root: Path) -> "Machine":
        """Create a machine. This takes one or two minutes."""
        packages = f"--include={','.join(PACKAGES)}"
        subprocess.run(
            ["debootstrap", "--variant=minbase", packages, SUITE, root], check=True, stdout=subprocess.DEVNULL
        )
        return cls(root)

    def copy(self, root: Path) -> "Machine":
        subprocess.run(["cp", "--archive", "--reflink=auto", self.root, root], check=True)
        return Machine(root)

    def run(self, *command: str, directory: str = "/", environment: dict[str, str] | None = None) -> None:
        """Run a command as root, with access to the network and to the same packages as this computer."""
        variables = {name: value for name, value in os.environ.items() if PIP_VARIABLE.fullmatch(name)} | (
            environment or {}
        )
        options = (
            *(f"--setenv={name}={value}" for name, value in variables.items()),
            *(f"--bind-ro={path}" for path in pip_paths()),
            "--resolv-conf=replace-host",
            f"--chdir={directory}",
        )
        subprocess.run([*self.nspawn(), "--pipe", *options, *command], check=True, stdin=subprocess.DEVNULL)

    def nspawn(self) -> list[str | Path]:
        return ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--directory", self.root]

    @contextmanager
    def booted(self) -> Iterator[None]:
        """Boot the machine until the block ends, with a loopback interface as its only network."""
        with self.started("--boot", "--console=pipe"):
            wait_until(
                self.has_booted, poll_seconds=POLL_SECONDS, explain=lambda: self.enter("systemctl", "list-jobs").stdout
            )
            yield

    def has_booted(self) -> bool:
        return self.enter("systemctl", "is-system-running").stdout.strip() in {"running", "degraded"}

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start the first process until the block ends, with a loopback interface as its only network."""
        command = [*self.nspawn(), "--private-network", *arguments]
        nspawn = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},  # its systemd supports no other
        )
        try:
            while (leader := first_process(nspawn)) is None:
                assert nspawn.poll() is None
                time.sleep(POLL_SECONDS)
            self.leader = leader
            yield nspawn
        finally:
            if self.leader is not None:
                with suppress(psutil.NoSuchProcess):
                    self.leader.send_signal(signal.SIGKILL)  # this ends all processes of the machine
            nspawn.wait()
            self.leader = None

    def terminate(self) -> None:
        """Send SIGTERM to the first process."""
        assert self.leader is not None
        self.leader.terminate()

    def enter(self, *command: str, directory: str = "/") -> subprocess.CompletedProcess[str]:
        """Run a command in the running machine, whether it succeeds or fails."""
        assert self.leader is not None
        namespaces = ["nsenter", "--target", str(self.leader.pid), "--mount", "--uts", "--ipc", "--net", "--pid"]
        bare = ["env", "-i", "-C", directory, "PATH=/usr/sbin:/usr/bin", "HOME=/root"]
        return subprocess.run(
            [*namespaces, *bare, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )


def first_process(nspawn: subprocess.Popen[bytes]) -> psutil.Process | None:
    """Return the first process of the machine; None until nspawn has started it."""
    for child in psutil.Process(nspawn.pid).children():
        with suppress(psutil.NoSuchProcess):
            if child.cmdline() and "nspawn" not in child.cmdline()[0]:
                return child
    return None


def pip_paths() -> list[str]:
    """Return the files and directories of this computer that its pip reads."""
    configuration = subprocess.run(
        [ROOT / ".venv/bin/python", "-m", "pip", "config", "debug"], capture_output=True, text=True, check=True
    ).stdout
    paths = {*PATH.findall(configuration), *(os.environ[name] for name in os.environ if PIP_VARIABLE.fullmatch(name))}
    roots = {path.removesuffix("/simple") for path in paths}  # an index refers to files next to it
    return sorted(path for path in roots if path.startswith("/") and Path(path).exists())


def put_checkout(machine: Machine, directory: str) -> None:
    """Copy the files of this checkout into the machine, as `git clone` would."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = machine.root / directory.lstrip("/") / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
