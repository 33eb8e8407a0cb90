"""The commands of the operations guide work: the tests run them as they are written there."""

import os
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
import yaml
from django.contrib.sessions.models import Session
from django.utils import timezone

from payments.models import PaymentRead
from tests.support.commands import output_of
from tests.support.connecting import connected_to
from tests.support.load import Load
from tests.support.migrated import empty_database, fresh_database
from tests.support.postgresql import get_server
from tests.support.processes import ROOT
from tests.support.service import Service
from tests.support.tools import unavailable

GUIDE = (ROOT / "docs/operations.md").read_text()
PAYMENTS = 2000
ORGANIZATION = 1001


def commands(section: str) -> list[str]:
    """Return the command blocks of a section of the guide."""
    [text] = re.findall(rf"^{section}\n(.*?)(?=^##)", GUIDE, re.MULTILINE | re.DOTALL)
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
    dump, _create, restore, compare = commands("### Dump")
    key = dumped.create_api_key(organization=ORGANIZATION, mode="live")
    with empty_database(tmp_path) as url:
        restored = Service(url, log=tmp_path / "log")
        environment = {
            **dumped.environment,
            "PATH": f"{programs(dumped, tmp_path)}:{os.environ['PATH']}",
            "DATABASE_URL": dumped.database_url,
            "RESTORED_URL": restored.database_url,
        }

        for command in (dump, restore):
            output_of(["sh", "-euc", command.replace("/srv/backups", str(tmp_path))], env=environment)

        sums = output_of(["sh", "-euc", compare], cwd=ROOT, env=environment).split("\n")
        assert sums[0] == sums[1]
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
            Session.objects.create(session_key=name, session_data="", expire_date=time)
            PaymentRead.objects.create(read_at=time, user_id=1, user_name=name, organization_id=1, payment_id="pt_1")

    for command in commands("## Delete old rows"):
        shell = f'manage() {{ {sys.executable} manage.py "$@"; }}; {command}'
        output_of(["sh", "-euc", shell], cwd=ROOT, env=dumped.environment)

    with connected_to(dumped.database_url):
        assert [session.session_key for session in Session.objects.all()] == ["new"]
        assert [read.user_name for read in PaymentRead.objects.all()] == ["new"]


PATRONI = (ROOT / "deploy/patroni.yml").read_text()


def test_settings_of_one_patroni_server_are_marked() -> None:
    lines = PATRONI.splitlines()
    marked = [line for line in lines if "# HERE" in line]

    own = [line for line in lines if re.search(r"\b10\.0\.0\.1:(8008|5432)|\bname: db", line)]

    assert len(marked) == 5
    assert own == marked


def test_guide_adapts_the_patroni_settings_to_a_server() -> None:
    [command] = [block for block in commands("## Three PostgreSQL servers") if "deploy/patroni.yml" in block]
    [sed] = [line.partition(" >")[0] for line in command.splitlines() if line.startswith("sed ")]

    text = output_of(["sh", "-euc", f"name=db2 address=10.0.0.2; {sed}"], cwd=ROOT)

    settings = yaml.safe_load(text)
    shared = settings["bootstrap"]["dcs"]
    assert settings["name"] == "db2"
    assert settings["restapi"]["connect_address"] == "10.0.0.2:8008"
    assert settings["postgresql"]["connect_address"] == "10.0.0.2:5432"
    assert shared["synchronous_mode"] is True
    assert shared["loop_wait"] + 2 * shared["retry_timeout"] <= shared["ttl"]
