"""deploy/payments.env and docs/settings.md explain every setting, and the service starts with deploy/payments.env."""

import ast
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support.commands import output_of, run_command
from tests.support.processes import ROOT
from tests.support.service import Service, inherited_environment

pytestmark = pytest.mark.once

FILE = ROOT / "deploy/payments.env"
GUIDE = ROOT / "docs/settings.md"

# A setting, or a default that is commented out. systemd, a shell and Compose read single quotes in the same way.
LINE = re.compile(r"^(?P<comment>#?)(?P<name>[A-Z_]+)='(?P<value>[^'\n]*)'$", re.MULTILINE)
GUIDE_ITEM = re.compile(r"^- `([A-Z_]+)` \([^)]+\): \S", re.MULTILINE)


def names_in_settings() -> Iterator[str]:
    """Yield the name of every variable that settings.py reads through `env`."""
    for node in ast.walk(ast.parse((ROOT / "payments_site/settings.py").read_text())):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="env")), args=[ast.Constant(value=str(name)), _, *_]
            ) if name.isupper():
                yield name


def names_in_file() -> list[str]:
    return [line["name"] for line in LINE.finditer(FILE.read_text())]


def names_in_guide() -> list[str]:
    return GUIDE_ITEM.findall(GUIDE.read_text())


def test_file_and_guide_explain_exactly_the_settings() -> None:
    names = sorted({*names_in_settings()})

    assert {"DATABASE_URL", "WEB_WORKERS"} < set(names)
    assert sorted(names_in_file()) == names
    assert sorted(names_in_guide()) == names


@pytest.mark.processes
def test_clean_environment_unsets_every_setting() -> None:
    names = set(names_in_settings())
    environment = {"PATH": os.environ["PATH"], **dict.fromkeys(names, "x")}

    output = output_of(["/bin/sh", "-c", ". scripts/clean_environment; env"], cwd=ROOT, env=environment)

    assert names.isdisjoint(line.partition("=")[0] for line in output.splitlines())


def test_every_line_is_a_comment_or_a_setting() -> None:
    comments = [line for line in FILE.read_text().splitlines() if line and not LINE.fullmatch(line)]

    assert [line for line in comments if not line.startswith("# ") and line != "#"] == []


@pytest.mark.processes
def test_settings_that_are_commented_out_are_the_defaults() -> None:
    commented = {line["name"]: line["value"] for line in LINE.finditer(FILE.read_text()) if line["comment"]}
    names = {*names_in_settings()} - {"WEB_WORKERS", "WEB_THREADS"}  # the defaults depend on the processors
    environment = {name: commented[name] for name in names if name in commented}

    assert environment
    assert settings_with({}, names=list(environment)) == settings_with(environment, names=list(environment))


def settings_with(environment: dict[str, str], *, names: list[str]) -> str:
    """Return the values of these settings, as a separate process reads them; for a URL, the databases."""
    program = (
        "from django.conf import settings\n"
        "def value(*names): return next(getattr(settings, name) for name in names if hasattr(settings, name))\n"
        f"print([value(f'PAYMENTS_{{name}}', name, 'DATABASES') for name in {names}])"
    )
    environment = inherited_environment() | {"DJANGO_SETTINGS_MODULE": "payments_site.settings"} | environment
    return output_of([ROOT / ".venv/bin/python", "-c", program], cwd=ROOT, env=environment)


@pytest.mark.extended
@pytest.mark.processes
def test_service_starts_with_the_file_a_secret_and_a_database(tmp_path: Path) -> None:
    """A shell reads the file here, systemd in tests/deploy/test_machine.py."""
    file = tmp_path / "payments.env"
    text = FILE.read_text().replace("SECRET_KEY=''", f"SECRET_KEY='{secrets.token_urlsafe(64)}'")
    database = f"DATABASE_URL='sqlite:///{tmp_path}/payments.sqlite3'"
    file.write_text(re.sub("^DATABASE_URL=.*$", database, text, flags=re.MULTILINE))
    service = Service("replaced by the file")

    checked = run_with(file, ".venv/bin/python manage.py check --deploy --fail-level WARNING", service)
    with service.serving("sh", "-euc", f'set -a; . "{file}"; exec scripts/start'):
        connection = HTTPConnection("127.0.0.1", service.port)
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
        connection.close()

    assert checked.returncode == 0, checked.stderr
    assert status == 200


@pytest.mark.processes
def test_service_does_not_start_without_a_secret() -> None:
    process = run_with(FILE, "exec scripts/start", Service("replaced by the file"))

    assert process.returncode != 0
    assert "SECRET_KEY: Must be set" in process.stderr


def run_with(file: Path, command: str, service: Service) -> subprocess.CompletedProcess[str]:
    """Run a shell command with the settings of a file."""
    return run_command(["sh", "-euc", f'set -a; . "{file}"; {command}'], cwd=ROOT, env=service.environment)
