"""deploy/payments.env explains every setting, and the service starts with what it says."""

import ast
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

from tests.support.processes import ROOT
from tests.support.service import SETTINGS, Service

FILE = ROOT / "deploy/payments.env"

# A setting, commented out where it is the default; the single quotes are literal to all who read it.
LINE = re.compile(r"^(?P<comment>#?)(?P<name>[A-Z_]+)='(?P<value>[^'\n]*)'$", re.MULTILINE)
README_ROW = re.compile(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \| ([^|]+) \|", re.MULTILINE)
SHELL_DEFAULT = re.compile(r"^([A-Z_]+)=\$\{\1:-", re.MULTILINE)


def read_by_settings() -> Iterator[str]:
    """Yield the name of every variable that settings.py asks `env` for."""
    for node in ast.walk(ast.parse((ROOT / "payments_site/settings.py").read_text())):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="env")), args=[ast.Constant(value=str(name)), _, *_]
            ) if name.isupper():
                yield name


def read_by_start() -> list[str]:
    return SHELL_DEFAULT.findall((ROOT / "scripts/start").read_text())


def explained() -> dict[str, str]:
    """Return what each setting is, or would be without its line."""
    return {found["name"]: found["value"] for found in LINE.finditer(FILE.read_text())}


def in_readme() -> list[str]:
    table = (ROOT / "README.md").read_text().partition("## Settings")[2].partition("\n## ")[0]
    return [name for names, _ in README_ROW.findall(table) for name in re.findall("[A-Z_]+", names)]


def test_every_setting_that_is_read_is_explained_and_no_other() -> None:
    read = {*read_by_settings(), *read_by_start()}

    assert {"DATABASE_URL", "WEB_WORKERS"} < read
    assert set(explained()) == read
    assert set(in_readme()) == read


def test_each_line_is_a_comment_or_a_setting() -> None:
    """Single quotes: what stands within is the same to systemd, to a shell and to Compose."""
    others = [line for line in FILE.read_text().splitlines() if line and not LINE.fullmatch(line)]

    assert [line for line in others if not line.startswith("# ") and line != "#"] == []


def test_what_is_commented_out_is_the_default() -> None:
    commented = {found["name"]: found["value"] for found in LINE.finditer(FILE.read_text()) if found["comment"]}
    of_settings = {name: commented[name] for name in read_by_settings() if name in commented}

    assert of_settings
    assert settings_with({}, names=list(of_settings)) == settings_with(of_settings, names=list(of_settings))


def settings_with(environment: dict[str, str], *, names: list[str]) -> str:
    """Return what these settings are, in a process of their own."""
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    program = f"from django.conf import settings; print([getattr(settings, name) for name in {names}])"
    done = subprocess.run(
        [ROOT / ".venv/bin/python", "-c", program],
        cwd=ROOT,
        env=inherited | {"DJANGO_SETTINGS_MODULE": "payments_site.settings"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_service_starts_with_it_once_its_secret_and_database_are_given(tmp_path: Path) -> None:
    """A shell reads it here, systemd in tests/deploy/test_machine.py."""
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


def test_without_a_secret_it_does_not_start() -> None:
    done = run_with(FILE, "exec scripts/start", Service("replaced by the file"))

    assert done.returncode != 0
    assert "SECRET_KEY must be set" in done.stderr


def run_with(file: Path, command: str, service: Service) -> subprocess.CompletedProcess[str]:
    """Run a shell's command with the settings of a file."""
    return subprocess.run(
        ["sh", "-euc", f'set -a; . "{file}"; {command}'],
        cwd=ROOT,
        env=service.environment,
        capture_output=True,
        text=True,
        check=False,
    )
