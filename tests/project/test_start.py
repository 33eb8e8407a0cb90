"""scripts/start checks what the service needs. If something is wrong, one line says what to do."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import django
import psutil
import pytest

from payments import __version__
from tests.support.commands import run_command
from tests.support.exchange import Request, send_request
from tests.support.ports import free_port
from tests.support.processes import ROOT
from tests.support.service import SERVE, START, Service, inherited_environment
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.processes]


def start(directory: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    service = Service(
        f"sqlite:///{directory}/payments.sqlite3", settings={"RUNTIME_DIRECTORY": str(directory / "run"), **settings}
    )
    return run_command([ROOT / "scripts/start"], cwd=ROOT, env=service.environment)


def install(checkout: Path) -> str:
    done = run_command([checkout / "scripts/install"], cwd=checkout, env=inherited_environment())
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of this checkout with its packages, without static files."""
    copy = tmp_path / "checkout"
    (copy / ".venv").mkdir(parents=True)
    for name in ("payments", "payments_site", "scripts"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("manage.py", "requirements.txt"):
        shutil.copy(ROOT / name, copy)
    shutil.copy(ROOT / "requirements.txt", copy / ".venv/installed-requirements.txt")
    for name in ("bin", "lib", "pyvenv.cfg"):
        (copy / ".venv" / name).symlink_to(ROOT / ".venv" / name)
    return copy


@pytest.mark.extended
def test_start_needs_the_static_files_that_install_collects(checkout: Path) -> None:
    missing = start_copy(checkout)
    shutil.copytree(ROOT / "staticfiles", checkout / "staticfiles")
    shutil.copytree(ROOT / ".venv/collected-static", checkout / ".venv/collected-static")
    installed = [install(checkout)]
    collected = start_copy(checkout)
    (checkout / "payments/static/docs/page.css").write_text("/* of another version */")
    outdated = start_copy(checkout)
    installed.append(install(checkout))

    message = "The static files are missing or older than the code. Run scripts/install.\n"
    assert (missing.returncode, missing.stderr) == (outdated.returncode, outdated.stderr) == (1, message)
    assert collected.stderr.startswith("Invalid settings. HSTS_SECONDS")
    assert installed == ["", "Collecting static files\n"]
    pages = [*(checkout / "staticfiles/docs").glob("page.*.css")]
    assert "/* of another version */" in [page.read_text() for page in pages]
    assert len(pages) >= 2
    assert not (checkout / "var").exists()


def start_copy(checkout: Path) -> subprocess.CompletedProcess[str]:
    """Start with an invalid setting, which is found after the static files are checked."""
    settings = {"DJANGO_SETTINGS_MODULE": "payments_site.settings", "HSTS_SECONDS": "-1"}
    service = Service("sqlite:///unused", settings=settings)
    return run_command([checkout / "scripts/start"], cwd=checkout, env=service.environment)


def test_directory_accessible_to_others_stops_the_start(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    directory.chmod(0o755)

    done = start(tmp_path)

    assert done.returncode == 1
    assert done.stderr == (
        f"CommandError: RUNTIME_DIRECTORY {directory} is accessible to other users. Run: chmod 700 {directory}\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("HSTS_SECONDS", "-1", "Invalid settings. HSTS_SECONDS: Must be a whole number of seconds"),
        ("PORT", "0", "Invalid settings. PORT: Must be a whole number from 1 to 65535."),
        ("WEB_THREADS", "101", "Invalid settings. WEB_THREADS: Must be a whole number from 1 to 100."),
        ("WEB_WORKERS", "x", "Invalid settings. WEB_WORKERS: Must be a whole number from 1 to 1000."),
        ("HOST", "localhost", "CommandError: HOST must be an IP address, such as 127.0.0.1 or 0.0.0.0."),
    ],
)
def test_invalid_setting_stops_the_start(tmp_path: Path, name: str, value: str, message: str) -> None:
    done = start(tmp_path, **{name: value})

    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_start_warns_once_and_serves(tmp_path: Path) -> None:
    settings = {"RUNTIME_DIRECTORY": str(tmp_path / "run"), "DATABASE_URI": "sqlite:///another", "WEB_THREADS": "5"}
    service = Service(f"sqlite:///{tmp_path}/payments.sqlite3", settings=settings, workers=2, log=tmp_path / "log")

    with service.serving(START):
        command = psutil.Process(service.server.pid).cmdline()
        status = send_request(service.port, Request("GET /readyz", (("Host", "127.0.0.1"),))).status

    lines = (tmp_path / "log").read_text().splitlines()
    warnings = [line for line in lines if line.startswith("Warning: ")]
    first, *_ = [json.loads(line) for line in lines if line not in warnings]
    assert command[1:3] == ["-P", str(ROOT / "payments_site/workers.py")]  # has replaced the script
    assert status == 503
    assert (first["level"], first["logger"]) == ("INFO", "payments_site.start")
    assert first["message"].startswith(f"payments-site {__version__} (Django {django.get_version()}, Python ")
    assert first["message"].endswith(f") listens on 127.0.0.1, port {service.port}")
    assert "\n".join(lines).count(f"payments-site {__version__}") == 1
    assert "Python threads" not in "\n".join(lines)  # a warning of Granian
    assert warnings == [
        "Warning: DATABASE_URI is not a setting. Did you mean DATABASE_URL?",
        "Warning: The database is not migrated. Run manage.py migrate.",
    ]


def test_service_starts_before_its_database_with_a_warning(tmp_path: Path) -> None:
    database_url = f"postgresql://payments@127.0.0.1:{free_port()}/payments"
    service = Service(database_url, settings={"RUNTIME_DIRECTORY": str(tmp_path / "run")})

    done = service.run("start", "--check")

    assert done.returncode == 0
    assert done.stderr.startswith("Warning: The database failed: connection failed: ")
    assert done.stderr.endswith("Check DATABASE_URL, and that the database server runs.\n")


def test_check_names_the_missing_directory_of_a_database(tmp_path: Path) -> None:
    path = tmp_path / "missing/payments.sqlite3"

    done = Service(f"sqlite:///{path}", settings={"RUNTIME_DIRECTORY": str(tmp_path / "run")}).run("start", "--check")

    assert done.returncode == 0
    assert done.stderr.startswith(f"Warning: The database failed: {path}: unable to open database file. Check the path")
    assert done.stderr.count("\n") == 1


def test_worker_prints_an_invalid_setting_in_one_line(tmp_path: Path) -> None:
    """scripts/start finds invalid settings before. Another command may start the workers without it."""
    service = Service(f"sqlite:///{tmp_path}/payments.sqlite3", settings={"HSTS_SECONDS": "-1"})
    options = ("--interface", "wsgi", "--port", str(service.port), "--workers", "2")

    done = run_command(
        [sys.executable, "-m", "granian", *options, "payments_site.wsgi:application"],
        cwd=ROOT,
        env=service.environment,
    )

    lines = {line for line in done.stderr.splitlines() if not line.startswith("[")}
    assert done.returncode == 1
    assert lines == {"Invalid settings. HSTS_SECONDS: Must be a whole number of seconds from 0 to 1000000000."}


@pytest.mark.extended
def test_reload_loads_the_code_of_a_new_release(tmp_path: Path) -> None:
    release = tmp_path / "release"
    for package in ("payments", "payments_site"):
        shutil.copytree(ROOT / package, release / package)
    (release / "docs").symlink_to(ROOT / "docs")
    service = Service(f"sqlite:///{tmp_path}/payments.sqlite3")

    def served_release() -> str:
        with urlopen(f"{service.base_url}/docs/openapi.json") as response:  # noqa: S310  our own service
            return str(json.load(response)["info"]["x-release"])

    with service.serving("sh", "-c", 'cd "$0" && exec "$@"', release, sys.executable, "-c", SERVE):
        before = served_release()
        (release / "payments/__init__.py").write_text('__version__ = "77.7.7"')
        service.server.send_signal(signal.SIGHUP)
        wait_until(lambda: served_release() == "77.7.7")

    assert before == __version__
