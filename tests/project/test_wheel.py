"""The wheel contains what the service needs. Installed, it needs only two settings and writes nothing beside itself."""

import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import PathDistribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from payments import __version__
from payments.docs.pages import PAGES
from tests.support.commands import output_of, run_command
from tests.support.exchange import Request, send_request
from tests.support.migrated import fresh_database
from tests.support.processes import ROOT
from tests.support.service import Service

pytestmark = [pytest.mark.once, pytest.mark.extended, pytest.mark.processes, pytest.mark.xdist_group("wheel")]


def sources() -> set[str]:
    """Return the files of the packages in this checkout."""
    return set(output_of(["git", "ls-files", "payments", "payments_site"], cwd=ROOT).splitlines())


@pytest.mark.needs("git")
def test_wheel_has_the_packages_the_pages_and_the_static_files(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        pages = {page.file: archive.read(f"payments/docs/documents/{page.file}").decode() for page in PAGES}
    static = {name.removeprefix("payments_site/staticfiles/") for name in names if "/staticfiles/" in name}
    documents = {name for name in names if name.startswith("payments/docs/documents/")}

    assert names - documents - {f"payments_site/staticfiles/{name}" for name in static} == sources()
    assert pages == {page.file: (ROOT / "docs" / page.file).read_text() for page in PAGES}
    assert {"staticfiles.json", "payments/admin.css", "payments/admin.css.gz", "admin/css/base.css"} <= static
    assert any(name.startswith("payments/admin.") and name.count(".") == 2 for name in static)  # with a hash


def test_sdist_builds_the_same_wheel_as_the_checkout(wheel: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    assert run_command(command).returncode == 0

    assert wheel.read_bytes() == (tmp_path / wheel.name).read_bytes()


def test_wheel_is_built_with_packages_that_only_an_environment_variable_names(wheel: Path, tmp_path: Path) -> None:
    """`pip install` of the sdist builds so."""
    venv.create(tmp_path / "empty", with_pip=False)
    packages = {"PYTHONPATH": sysconfig.get_path("purelib"), "PATH": "/usr/bin:/bin"}
    python = tmp_path / "empty/bin/python"
    command = (python, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path)

    done = run_command(command, cwd=ROOT, env=packages)

    assert done.returncode == 0, done.stderr
    with ZipFile(wheel) as expected, ZipFile(tmp_path / wheel.name) as built:
        assert built.namelist() == expected.namelist()


@pytest.mark.needs("git")
def test_sdist_has_the_files_for_a_machine_with_a_wheel(wheel: Path, tmp_path: Path) -> None:
    guide = (ROOT / "deploy/README.md").read_text().partition("## From a wheel")[2].partition("```sh\n")[2]
    commands = guide.partition("python3 -m venv")[0]
    [sdist] = wheel.parent.glob("*.tar.gz")

    script = commands.replace("/opt/payments", f"{tmp_path}/opt").replace("payments_site-VERSION.tar.gz", str(sdist))
    output_of(["sh", "-ec", script])

    files = {path.relative_to(tmp_path / "opt").as_posix() for path in (tmp_path / "opt").rglob("*") if path.is_file()}
    assert files == {"requirements.txt", *output_of(["git", "ls-files", "deploy"], cwd=ROOT).split()}
    unit = (tmp_path / "opt/deploy/payments.service").read_text()
    assert f"\nExecStart={tmp_path}/opt/.venv/bin/payments start\n" in unit


def test_metadata_names_the_version_and_the_program(installed_wheel: Path) -> None:
    [path] = installed_wheel.glob("*.dist-info")
    distribution = PathDistribution(path)

    assert (distribution.name, distribution.version) == ("payments-site", __version__)
    assert [(entry.name, entry.value) for entry in distribution.entry_points] == [
        ("payments", "payments_site.__main__:main")
    ]


def payments(installed: Path, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program `payments` with nothing but these variables."""
    environment |= {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "true"}
    return run_command([installed / "bin/payments", *arguments], cwd=cwd, env=environment)


NO_DATABASE = "DATABASE_URL: Must be set: postgresql://USER:PASSWORD@HOST:PORT/NAME, or sqlite:////PATH."
KEY = "for-tests-alone-0123456789-abcdefghijklmnopqrstuvwxyz"
NO_KEY = "SECRET_KEY: Must be set: at least 50 random characters."


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, f"{NO_DATABASE} {NO_KEY}"),
        ({"SECRET_KEY": KEY}, NO_DATABASE),
        ({"DATABASE_URL": "sqlite:///x"}, NO_KEY),
        (
            {"DATABASE_URL": "sqlite:///x", "SECRET_KEY": KEY, "WEB_THREADS": "0"},
            "WEB_THREADS: Must be a whole number from 1 to 100.",
        ),
    ],
)
@pytest.mark.parametrize("command", ["migrate", "start"])
def test_missing_setting_is_one_line(
    installed_wheel: Path, tmp_path: Path, command: str, settings: dict[str, str], message: str
) -> None:
    done = payments(installed_wheel, command, cwd=tmp_path, **settings)

    assert (done.returncode, done.stderr) == (1, f"Invalid settings. {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_missing_package_leads_to_another_installation(installed_wheel: Path, tmp_path: Path) -> None:
    program = "from payments_site.__main__ import main; main()"

    done = run_command(
        [sys.executable, "-S", "-c", program, "check"], cwd=tmp_path, env={"PYTHONPATH": installed_wheel}
    )

    assert (done.returncode, done.stderr) == (1, "Python cannot find the module django. Install it again.\n")


def test_installed_program_serves_the_pages_and_writes_nothing_beside_itself(
    installed_wheel: Path, tmp_path: Path
) -> None:
    files = sorted(installed_wheel.rglob("*"))
    settings = {"PYTHONPATH": str(installed_wheel), "PYTHONDONTWRITEBYTECODE": "true", "TMPDIR": str(tmp_path)}
    with fresh_database(tmp_path) as url:
        service = Service(url, settings={**settings, "DJANGO_SETTINGS_MODULE": "payments_site.settings"})
        environment = {name: value for name, value in service.environment.items() if name != "RUNTIME_DIRECTORY"}
        shown = run_command([installed_wheel / "bin/payments", "show_version"], cwd=tmp_path, env=environment)
        with service.serving("env", "-u", "RUNTIME_DIRECTORY", installed_wheel / "bin/payments", "start"):
            statuses = {path: get(service, path) for path in ("/readyz", "/docs/", "/docs/importing/", "/v2/payments")}
            login = fetch(service, "/admin/login/")
            sheets = [part.partition('"')[0] for part in login.split('href="')[1:] if part.startswith("/static/")]
            styles = {sheet: get(service, sheet) for sheet in sheets}

    assert shown.stdout.startswith(f"payments-site {__version__} (Django ")
    assert statuses == {"/readyz": 200, "/docs/": 200, "/docs/importing/": 200, "/v2/payments": 401}
    assert len(styles) > 3
    assert set(styles.values()) == {200}
    assert sorted(installed_wheel.rglob("*")) == files
    assert [path.name for path in tmp_path.glob("payments-*")] != []  # the runtime directory


def get(service: Service, path: str) -> int:
    return send_request(service.port, Request(f"GET {path}", (("Host", "127.0.0.1"),))).status


def fetch(service: Service, path: str) -> str:
    return send_request(service.port, Request(f"GET {path}", (("Host", "127.0.0.1"),))).body.decode()
