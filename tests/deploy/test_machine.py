"""What deploy/README.md says, done to a machine made from nothing; and the Dockerfile's steps, in another."""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from payments import api_keys
from tests.support import machine
from tests.support.dockerfile import Stage, stages
from tests.support.lines import line
from tests.support.machine import Machine, put_checkout
from tests.support.processes import ROOT, START_SECONDS_MAX
from tests.support.scale import report
from tests.support.tools import unavailable

HOST = "pay.localhost"  # for which Caddy is an authority itself
AUTHORITY = "/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt"
CLONE = "git clone REPOSITORY /opt/payments\n"
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if reason := machine.why_not():
        unavailable(reason)
    made = Machine.made(tmp_path_factory.mktemp("debian") / "root")
    yield made
    shutil.rmtree(made.root)


@pytest.fixture(scope="module")
def copies(debian: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where copies of the machine may be put."""
    directory = tmp_path_factory.mktemp("copies")
    yield directory
    shutil.rmtree(directory)


def blocks() -> list[str]:
    """Return the commands of the way with systemd, as they stand there."""
    text = (ROOT / "deploy/README.md").read_text()
    return BLOCK.findall(text.partition("## On a machine")[2].partition("\n## ")[0])


def test_the_readmes_commands_lead_from_a_fresh_machine_to_a_page(debian: Machine, copies: Path) -> None:
    fresh = debian.copied(copies / "systemd")
    packages, *others = blocks()
    before, after = packages.split(CLONE)

    fresh.run("sh", "-euc", before, environment={"DEBIAN_FRONTEND": "noninteractive"})
    fresh.run(
        "sh", "-euc", "sed -i 's/^port = .*/port = 5432/' /etc/postgresql/*/main/postgresql.conf"
    )  # busy out here
    put_checkout(fresh, "/opt/payments")
    fresh.run("sh", "-euc", after)
    (fresh.root / "root/payments.jsonl").write_bytes(line(organizationId="7") + b"\n")
    with fresh.booted():
        script = "\n".join(others).replace("host=pay.example", f"host={HOST}")
        done = fresh.enter("env", f"CURL_CA_BUNDLE={AUTHORITY}", "sh", "-euxc", script, directory="/root")
        assert done.returncode == 0, done.stderr
        page = json.loads(done.stdout[done.stdout.index('{"count"') :])
        assert_runs_well(fresh)
        assert_takes_sqlite(fresh)

    assert page["count"] == 1
    assert page["_links"]["self"]["href"].startswith(f"https://{HOST}/v2/payments?")


def assert_runs_well(fresh: Machine) -> None:
    """Workers are replaced, bad keys are counted, nothing complains, and it ends as it should."""
    headers = ("--header", f"Host: {HOST}", "--header", f"Authorization: Bearer {api_keys.new_key('live')}")
    ask = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", *headers)
    workers = log_of(fresh).count("Started worker")

    fresh.enter("systemctl", "reload", "payments")
    wait_until(lambda: log_of(fresh).count("Started worker") == 2 * workers)
    wait_until(lambda: log_of(fresh).count("Stopped old worker") == workers)
    refused = fresh.enter(*ask, "http://127.0.0.1:8000/v2/payments")
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


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 2 * START_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(machine.TRY_EVERY_SECONDS)


def property_of(fresh: Machine, name: str) -> str:
    return fresh.enter("systemctl", "show", "--value", f"--property={name}", "payments").stdout.strip()


def assert_takes_sqlite(fresh: Machine) -> None:
    """The same unit, with the other kind of database in the one directory that it may write."""
    script = r"""
        url=sqlite:////var/lib/payments/payments.sqlite3
        sed -i "s|^DATABASE_URL=.*|DATABASE_URL='$url'|" /etc/payments/payments.env
        /opt/payments/deploy/manage migrate --verbosity 0
        systemctl start payments
        curl --silent --show-error --fail --retry 10 --retry-connrefused http://127.0.0.1:8000/readyz
    """
    done = fresh.enter("sh", "-euc", script)

    assert done.returncode == 0, done.stderr


def test_the_dockerfiles_steps_make_a_service_whose_root_may_be_read_only(debian: Machine, copies: Path) -> None:
    build, final = stages(ROOT / "deploy/Dockerfile")
    built = carried_out(build, debian.copied(copies / "build"), {})
    made = carried_out(final, debian.copied(copies / "final"), {build.name: built})
    user, group = final.only("USER").split(":")
    as_user = [
        "setpriv",
        f"--reuid={user}",
        f"--regid={group}",
        "--clear-groups",
        "--no-new-privs",
        "--bounding-set=-all",
    ]
    given = final.variables | {
        "DATABASE_URL": "sqlite:////tmp/payments.sqlite3",
        "SECRET_KEY": "for-tests-alone-0123456789-abcdefghijklmnopqrstuvwxyz",
    }
    directory = final.all("WORKDIR")[-1]
    mounts = ["--tmpfs=/tmp:mode=1777", f"--tmpfs={given['RUNTIME_DIRECTORY']}:uid={user},gid={group},mode=0700"]
    environment = [f"--setenv={name}={value}" for name, value in given.items()]
    migrated_first = 'manage() { .venv/bin/python manage.py "$@"; }; manage migrate --verbosity 0; exec "$@"'

    with made.started(
        "--read-only", *mounts, f"--chdir={directory}", *environment, *as_user,
        *("sh", "-euc", migrated_first, "sh", *final.command),
    ) as container:  # fmt: skip
        entered = ["env", *(f"{name}={value}" for name, value in given.items()), *as_user, *final.health_check]
        wait_until(lambda: made.enter(*entered, directory=directory).returncode == 0)
        written = made.enter(*as_user, "sh", "-c", "touch /opt/payments/x /x", directory=directory)
        made.terminate()
        status = container.wait(timeout=START_SECONDS_MAX)

    assert written.returncode != 0
    assert status == 0


def carried_out(stage: Stage, into: Machine, others: dict[str, Machine]) -> Machine:
    """Do a stage's steps, those that change what is there."""
    directory = Path("/")
    for keyword, text in stage.instructions:
        if keyword == "WORKDIR":
            directory = Path(text)
            (into.root / text.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif keyword == "RUN":
            into.run("sh", "-euc", text, directory=str(directory), environment=stage.variables)
        elif keyword == "COPY":
            copy(text, into=into.root / str(directory).lstrip("/"), root=into.root, others=others)
    return into


def copy(text: str, *, into: Path, root: Path, others: dict[str, Machine]) -> None:
    """Copy as COPY does: a directory is what it holds, and a destination that ends with a slash is a directory."""
    *sources, destination = text.split()
    origin = ROOT
    if sources[0].startswith("--from="):
        origin = others[sources.pop(0).removeprefix("--from=")].root
    target = root / destination.lstrip("/") if destination.startswith("/") else into / destination
    for source in (origin / source.lstrip("/") for source in sources):
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
