"""The commands of the operator's guides work: the tests run them as they are written there."""

import os
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.utils import timezone

from payments.models import PaymentRead, StaffSession
from tests.support.commands import output_of
from tests.support.connecting import connected_to
from tests.support.load import Load
from tests.support.migrated import empty_database, fresh_database
from tests.support.postgresql import get_server
from tests.support.processes import ROOT
from tests.support.service import Service
from tests.support.tools import unavailable

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.processes, pytest.mark.extended]

GUIDES = ROOT / "docs/operate"
PAYMENTS = 2000
ORGANIZATION = 1001


def commands(guide: str, section: str) -> list[str]:
    """Return the command blocks of a section of a guide."""
    [text] = re.findall(rf"^## {section}\n(.*?)(?=^## )", (GUIDES / guide).read_text(), re.MULTILINE | re.DOTALL)
    return re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def programs(service: Service, directory: Path) -> Path:
    """Return the directory of PostgreSQL's programs, which must have the version of the service's server."""
    bin_path: Path = get_server(directory / "data", start=False).bin_path
    version = output_of([bin_path / "pg_dump", "--version"])
    with psycopg.connect(service.database_url) as database:
        if f" {database.info.server_version // 10_000}." not in version:
            unavailable(f"The server's version differs from {version.strip()}.")
    return bin_path


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with fresh_database(tmp_path_factory.mktemp("dumped")) as url:
        service = Service(url)
        service.create_demo_payments(PAYMENTS)
        yield service


def test_restored_dump_equals_the_original(dumped: Service, tmp_path: Path) -> None:
    dump, _create, restore, compare, _recover = commands("back-up.md", "PostgreSQL")
    key = dumped.create_api_key(organization=ORGANIZATION, mode="live")
    (tmp_path / "payments.env").write_text(f"DATABASE_URL='{dumped.database_url}'\n")
    with empty_database(tmp_path) as url:
        restored = Service(url, log=tmp_path / "log")
        environment = {
            **dumped.environment,
            "PATH": f"{programs(dumped, tmp_path)}:{os.environ['PATH']}",
            "RESTORED_URL": restored.database_url,
        }
        replacements = {
            "runuser -u payments -- ": "",
            "runuser -u postgres -- ": "",
            "/etc/payments": str(tmp_path),
            "/srv/backups": str(tmp_path),
            "--dbname=payments_restored": '--dbname="$RESTORED_URL"',
        }
        script = f"{dump}{restore}{compare}"
        for documented, actual in replacements.items():
            script = script.replace(documented, actual)

        sums = output_of(["sh", "-euc", script], cwd=ROOT, env=environment).split()

        assert sums[0] == sums[2]
        assert restored.exported() == dumped.exported() != ""
        with restored.serving():
            assert Load(restored.port, key).get().status == 200
        assert revisions(restored) == revisions(dumped)


def revisions(service: Service) -> list[tuple[int, str, int]]:
    select = "SELECT organization_id, mode, revision FROM payments_accessstate ORDER BY organization_id, mode"
    with psycopg.connect(service.database_url) as database:
        return database.execute(select).fetchall()


def test_old_rows_are_deleted(dumped: Service) -> None:
    now = timezone.now()
    with connected_to(dumped.database_url):
        for name, days in (("old", -400), ("new", 1)):
            time = now + timedelta(days=days)
            StaffSession.objects.create(session_key=name, session_data="", expire_date=time)
            PaymentRead.objects.create(read_at=time, user_id="1", user_name=name, organization_id=1, count=0)

    for command in commands("routine.md", "Delete old rows"):
        shell = f'manage() {{ {sys.executable} manage.py "$@"; }}; {command}'
        output_of(["sh", "-euc", shell], cwd=ROOT, env=dumped.environment)

    with connected_to(dumped.database_url):
        assert [session.session_key for session in StaffSession.objects.all()] == ["new"]
        assert [read.user_name for read in PaymentRead.objects.all()] == ["new"]
