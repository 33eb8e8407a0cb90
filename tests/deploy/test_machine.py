"""The commands of deploy/README.md and the steps of the Dockerfile, each on a new machine."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from payments.models import identifiers
from tests.deploy import machine
from tests.deploy.machine import Machine, put_checkout
from tests.support.dockerfile import Stage, stages
from tests.support.lines import line
from tests.support.processes import ROOT
from tests.support.scale import report
from tests.support.tools import unavailable
from tests.support.waiting import SECONDS_MAX, wait_until

HOST = "pay.localhost"  # Caddy signs certificates for it
AUTHORITY = "/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt"
CLONE = "git clone REPOSITORY /opt/payments\n"
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)

pytestmark = [pytest.mark.long, pytest.mark.once, pytest.mark.processes]


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if reason := machine.why_not():
        unavailable(reason)
    new = Machine.create(tmp_path_factory.mktemp("debian") / "root")
    yield new
    shutil.rmtree(new.root)


@pytest.fixture(scope="module")
def copies(debian: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a directory for copies of the machine."""
    directory = tmp_path_factory.mktemp("copies")
    yield directory
    shutil.rmtree(directory)


def blocks() -> list[str]:
    """Return the command blocks for systemd."""
    text = (ROOT / "deploy/README.md").read_text()
    return BLOCK.findall(text.partition("## On a machine")[2].partition("\n## ")[0])


def test_readme_commands_set_up_a_new_machine(debian: Machine, copies: Path) -> None:
    fresh = debian.copy(copies / "systemd")
    packages, *later = blocks()
    before, after = packages.split(CLONE)

    fresh.run("sh", "-euc", before, environment={"DEBIAN_FRONTEND": "noninteractive"})
    # If this computer uses the port, the new cluster has another one.
    fresh.run("sh", "-euc", "sed -i 's/^port = .*/port = 5432/' /etc/postgresql/*/main/postgresql.conf")
    put_checkout(fresh, "/opt/payments")
    fresh.run("sh", "-euc", after)
    (fresh.root / "root/payments.jsonl").write_bytes(line(organizationId="7") + b"\n")
    with fresh.booted():
        script = "\n".join(later).replace("host=pay.example", f"host={HOST}")
        done = fresh.enter("env", f"CURL_CA_BUNDLE={AUTHORITY}", "sh", "-euxc", script, directory="/root")
        assert done.returncode == 0, done.stderr
        page = json.loads(done.stdout[done.stdout.index('{"count"') :])
        assert_runs(fresh)
        assert_supports_sqlite(fresh)

    assert page["count"] == 1
    assert page["_links"]["self"]["href"].startswith(f"https://{HOST}/v2/payments?")


def assert_runs(fresh: Machine) -> None:
    """A reload replaces the workers, an invalid key is refused, nothing is logged as a warning, and the unit stops."""
    headers = ("--header", f"Host: {HOST}", "--header", f"Authorization: Bearer {identifiers.new_key('live')}")
    curl = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", *headers)
    workers = log_of(fresh).count("Started worker")

    fresh.enter("systemctl", "reload", "payments")
    wait_until(lambda: log_of(fresh).count("Started worker") == 2 * workers)
    wait_until(lambda: log_of(fresh).count("Stopped old worker") == workers)
    refused = fresh.enter(*curl, "http://127.0.0.1:8000/v2/payments")
    exposure = fresh.enter("systemd-analyze", "--no-pager", "security", "payments.service")
    stopped = fresh.enter("systemctl", "stop", "payments")

    assert workers > 0
    assert refused.stdout == "401"
    assert [line for line in log_of(fresh).splitlines() if line.startswith("{") and '"level": "INFO"' not in line] == []
    assert stopped.returncode == 0
    assert (property_of(fresh, "Result"), property_of(fresh, "NRestarts")) == ("success", "0")
    report(exposure.stdout.strip().splitlines()[-1])


def log_of(fresh: Machine) -> str:
    return fresh.enter("journalctl", "--boot", "--unit=payments", "--output=cat").stdout


def property_of(fresh: Machine, name: str) -> str:
    return fresh.enter("systemctl", "show", "--value", f"--property={name}", "payments").stdout.strip()


def assert_supports_sqlite(fresh: Machine) -> None:
    """The unit also works with SQLite, in the state directory."""
    script = r"""
        url=sqlite:////var/lib/payments/payments.sqlite3
        sed -i "s|^DATABASE_URL=.*|DATABASE_URL='$url'|" /etc/payments/payments.env
        /opt/payments/deploy/manage migrate --verbosity 0
        systemctl start payments
        curl --silent --show-error --fail --retry 10 --retry-connrefused http://127.0.0.1:8000/readyz
    """
    done = fresh.enter("sh", "-euc", script)

    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def container(debian: Machine, copies: Path) -> Machine:
    """Return a system like the image of the Dockerfile."""
    build, final = stages(ROOT / "deploy/Dockerfile")
    built = run_stage(build, debian.copy(copies / "build"), {})
    return run_stage(final, debian.copy(copies / "final"), {build.name: built})


@pytest.mark.parametrize(
    "mount",
    [
        pytest.param("uid=10001,gid=10001,mode=0700", id="Compose"),
        pytest.param("mode=1777", id="Docker"),
        pytest.param("gid=10001,mode=2777", id="emptyDir"),
    ],
)
def test_image_runs_with_a_read_only_root(container: Machine, mount: str) -> None:
    final = stages(ROOT / "deploy/Dockerfile")[1]
    user, group = final.only("USER").split(":")
    as_user = [
        "setpriv",
        f"--reuid={user}",
        f"--regid={group}",
        "--clear-groups",
        "--no-new-privs",
        "--bounding-set=-all",
    ]
    variables = final.variables | {
        "DATABASE_URL": "sqlite:////tmp/payments.sqlite3",
        "SECRET_KEY": "for-tests-alone-0123456789-abcdefghijklmnopqrstuvwxyz",
    }
    directory = final.all("WORKDIR")[-1]
    runtime_directory = Path(variables["RUNTIME_DIRECTORY"])
    mounts = ["--tmpfs=/tmp:mode=1777", f"--tmpfs={runtime_directory.parent}:{mount}"]
    environment = [f"--setenv={name}={value}" for name, value in variables.items()]
    migrate_first = 'manage() { .venv/bin/python manage.py "$@"; }; manage migrate --verbosity 0; exec "$@"'

    with container.started(
        "--read-only", *mounts, f"--chdir={directory}", *environment, *as_user,
        *("sh", "-euc", migrate_first, "sh", *final.command),
    ) as process:  # fmt: skip
        probe = ["env", *(f"{name}={value}" for name, value in variables.items()), *as_user, *final.health_check]
        wait_until(lambda: container.enter(*probe, directory=directory).returncode == 0)
        written = container.enter(*as_user, "sh", "-c", "touch /opt/payments/x /x", directory=directory)
        files = container.enter("ls", str(runtime_directory)).stdout.split()
        container.terminate()
        status = process.wait(timeout=SECONDS_MAX)

    assert written.returncode != 0
    assert "limits.sqlite3" in files
    assert status == 0


def run_stage(stage: Stage, into: Machine, earlier: dict[str, Machine]) -> Machine:
    """Run the instructions of a stage that change files."""
    directory = Path("/")
    for keyword, text in stage.instructions:
        if keyword == "WORKDIR":
            directory = Path(text)
            (into.root / text.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif keyword == "RUN":
            into.run("sh", "-euc", text, directory=str(directory), environment=stage.variables)
        elif keyword == "COPY":
            copy(text, into=into.root / str(directory).lstrip("/"), root=into.root, earlier=earlier)
    return into


def copy(text: str, *, into: Path, root: Path, earlier: dict[str, Machine]) -> None:
    """Copy like COPY: a source directory stands for its content, and files are copied into the destination."""
    *sources, destination = text.split()
    origin = ROOT
    if sources[0].startswith("--from="):
        origin = earlier[sources.pop(0).removeprefix("--from=")].root
    target = root / destination.lstrip("/") if destination.startswith("/") else into / destination
    for source in (origin / source.lstrip("/") for source in sources):
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
