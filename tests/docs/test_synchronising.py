"""The programs of docs/synchronising.md keep a copy of the payments, with the deployed service."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count, product
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pytest
from django.db import transaction

from payments.models import Access, AccessState, Change, Mode, Payment, Status
from payments.models.access_state import new_change_id
from payments.record import record_time
from tests.support.commands import run_command
from tests.support.connecting import connected_to
from tests.support.factories import NOON
from tests.support.lines import line
from tests.support.processes import ROOT
from tests.support.relay import ConnectionEnded, relayed
from tests.support.service import Service, Walker
from tests.support.sql import execute

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.xdist_group("service"), pytest.mark.extended]

DOCUMENT = (ROOT / "docs/synchronising.md").read_text()
WITH_SQLITE, WITH_DLT, SINGER_TAP = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
AIRBYTE_MANIFEST = (ROOT / "examples/airbyte.yaml").read_text()
AIRBYTE = "source-declarative-manifest"

# The organizations of the tests, which share a service.
ORGANIZATIONS = count(9101)

# The programs read so many payments per page.
LIMIT = 250

# The tables that contain an organization's payments and their changes.
TABLES = [model._meta.db_table for model in (Payment, Change, AccessState)]  # noqa: SLF001

BACK_UP = ["CREATE TABLE backup_{table} AS SELECT * FROM {table} WHERE organization_id = {organization}"]
RESTORE = [
    "DELETE FROM {table} WHERE organization_id = {organization}",
    "INSERT INTO {table} SELECT * FROM backup_{table}",
    "DROP TABLE backup_{table}",
]

# The statuses of payments by the minute, after noon, in which they are created.
Payments = Mapping[int, str]


@dataclass
class Shop:
    """An organization whose payments change."""

    organization: int
    service: Service

    def load(self, payments: Payments) -> None:
        self.service.import_records(self.line(minute, status) for minute, status in payments.items())

    def line(self, minute: int, status: str) -> bytes:
        created_at = record_time(NOON + timedelta(minutes=minute))
        return line(
            id=f"pt_{self.organization}at{minute}",
            organizationId=str(self.organization),
            createdAt=created_at,
            status=status,
        )

    def add_changes_without_payments(self) -> None:
        """Record so many changes that a page of the feed is empty, as if their payments had all changed again."""
        changes = [new_change_id() for _ in range(2 * 1000)]  # a page reads at most 1,000
        with connected_to(self.service.database_url), transaction.atomic():
            AccessState.objects.record({Access(self.organization, Mode.LIVE): changes}, days={})

    def statuses(self) -> dict[str, str]:
        """Return the statuses of all payments by ID."""
        with connected_to(self.service.database_url):
            return dict(Payment.objects.filter(organization=self.organization).values_list("id", "status"))

    def back_up(self) -> None:
        self.execute(BACK_UP)

    def restore(self) -> None:
        """Replace the payments and their changes with those of the backup."""
        self.execute(RESTORE)

    def execute(self, statements: Sequence[str]) -> None:
        """Run SQL statements for each table, in one transaction."""
        with connected_to(self.service.database_url), transaction.atomic():
            for table, statement in product(TABLES, statements):
                execute(statement.format(table=table, organization=self.organization))


@dataclass
class Copy(ABC):
    """A copy of a shop's payments, and the program that keeps it, in a directory."""

    shop: Shop
    directory: Path
    program: ClassVar[str]

    def __post_init__(self) -> None:
        (self.directory / "program").write_text(self.program)

    def run(self, *, url: str) -> None:
        """Run the program, which must succeed."""
        process = self.start(url=url)
        assert process.returncode == 0, process.stderr

    def run_after_restore(self, *, url: str) -> None:
        """Do what the document recommends after the database lost changes."""
        self.run(url=url)

    def start(self, *, url: str) -> subprocess.CompletedProcess[str]:
        """Run the program with a key of the shop, whether it succeeds or fails."""
        key = self.shop.service.create_api_key(organization=self.shop.organization, mode="live")
        (self.directory / "config.json").write_text(json.dumps({"url": url, "key": key}))
        return run_command(
            self.command(),
            cwd=self.directory,
            env={
                **os.environ,
                "PAYMENTS_URL": url,
                "PAYMENTS_KEY": key,
                "DLT_DATA_DIR": str(self.directory),  # the default directory is shared by all programs
                "RUNTIME__DLTHUB_TELEMETRY": "false",
            },
        )

    def command(self) -> list[str]:
        return [sys.executable, "program"]

    @abstractmethod
    def statuses(self) -> dict[str, str]:
        """Return the statuses of the copied payments by ID."""


class SqliteCopy(Copy):
    program = WITH_SQLITE

    def statuses(self) -> dict[str, str]:
        with closing(sqlite3.connect(self.directory / "payments.sqlite3")) as copy:
            return dict(copy.execute("SELECT id, json_extract(record, '$.status') FROM payments"))


class DuckdbCopy(Copy):
    program = WITH_DLT

    def statuses(self) -> dict[str, str]:
        with closing(duckdb.connect(self.directory / "payments.duckdb")) as copy:
            return dict(copy.execute("SELECT id, status FROM shop.payments").fetchall())


@dataclass
class MessagesCopy(Copy):
    """A copy that the test makes from the messages of a program, in their order: a payment replaces an earlier one."""

    records: dict[str, Any] = field(default_factory=dict)

    def start(self, *, url: str) -> subprocess.CompletedProcess[str]:
        process = super().start(url=url)
        for message in map(json.loads, process.stdout.splitlines()):
            self.receive(message)
        return process

    @abstractmethod
    def receive(self, message: Any) -> None:
        """Do what the target does with a message."""

    def statuses(self) -> dict[str, str]:
        return {payment_id: record["status"] for payment_id, record in self.records.items()}


class SingerCopy(MessagesCopy):
    program = SINGER_TAP

    @property
    def state(self) -> Path:
        return self.directory / "state.json"

    def command(self) -> list[str]:
        state = ["--state", str(self.state)] if self.state.exists() else []
        return [*super().command(), "--config", "config.json", *state]

    def receive(self, message: Any) -> None:
        match message:
            case {"type": "RECORD", "record": record}:
                self.records[record["id"]] = record
            case {"type": "STATE", "value": state}:
                self.state.write_text(json.dumps(state))

    def run_after_restore(self, *, url: str) -> None:
        process = self.start(url=url)
        assert process.returncode != 0
        assert "410 Client Error: Gone" in process.stderr
        self.records.clear()
        self.state.unlink()
        self.run(url=url)


class AirbyteCopy(MessagesCopy):
    program = AIRBYTE_MANIFEST

    def command(self) -> list[str]:
        stream = {"name": "payments", "json_schema": {}, "supported_sync_modes": ["full_refresh"]}
        configured = {"stream": stream, "sync_mode": "full_refresh", "destination_sync_mode": "overwrite"}
        (self.directory / "catalog.json").write_text(json.dumps({"streams": [configured]}))
        options = ["--manifest-path", "program", "--config", "config.json", "--catalog", "catalog.json"]
        return [AIRBYTE, "read", *options]

    def start(self, *, url: str) -> subprocess.CompletedProcess[str]:
        self.records.clear()  # Airbyte replaces the table with the payments of each sync
        return super().start(url=url)

    def receive(self, message: Any) -> None:
        if message["type"] == "RECORD":
            record = message["record"]["data"]
            self.records[record["id"]] = record


@pytest.fixture
def shop(service: Service) -> Shop:
    """A shop with some more payments than fit on two pages."""
    shop = Shop(next(ORGANIZATIONS), service)
    shop.load(dict.fromkeys(range(1, 601), Status.OPEN))
    return shop


@pytest.mark.parametrize(
    "kind",
    [SqliteCopy, DuckdbCopy, SingerCopy, pytest.param(AirbyteCopy, marks=pytest.mark.needs(AIRBYTE))],
)
def test_copy_equals_the_payments_after_each_run(shop: Shop, tmp_path: Path, kind: type[Copy]) -> None:
    shop.add_changes_without_payments()
    shop.load({601: Status.OPEN})
    copy = kind(shop, tmp_path)

    def change_a_copied_payment(request: int) -> None:
        if request == 2:
            shop.load({1: Status.PENDING})

    with relayed(shop.service.port, before=change_a_copied_payment) as url:
        copy.run(url=url)
        assert copy.statuses() == shop.statuses()
        assert Status.PENDING in copy.statuses().values()

        shop.back_up()
        late, changed, new = {0: Status.OPEN}, {1: Status.EXPIRED, 600: Status.FAILED}, {602: Status.SUCCEEDED}
        shop.load(late | changed | new)
        copy.run(url=url)
        assert copy.statuses() == shop.statuses()
        assert len(copy.statuses()) == 603

        shop.restore()
        shop.load({2: Status.CANCELED, 603: Status.OPEN})
        copy.run_after_restore(url=url)
        assert copy.statuses() == shop.statuses()
        assert len(copy.statuses()) == 602


def test_interrupted_run_is_continued(shop: Shop, tmp_path: Path) -> None:
    copy = SqliteCopy(shop, tmp_path)
    requests = []

    def interrupt(request: int) -> None:
        requests.append(request)
        if request == 2:
            raise ConnectionEnded

    with relayed(shop.service.port, before=interrupt) as url:
        assert copy.start(url=url).returncode != 0
        assert len(copy.statuses()) == LIMIT

        shop.load({1: Status.PENDING})
        copy.run(url=url)
        assert copy.statuses() == shop.statuses()
        assert requests == [1, 2, 3, 4]


def test_end_of_the_feed_is_not_modified_until_a_payment_changes(shop: Shop) -> None:
    key = shop.service.create_api_key(organization=shop.organization, mode="live")
    with Walker(shop.service.base_url, key) as client:
        later = client.get(f"{shop.service.base_url}/v2/payments/changes?from=now")["_links"]["later"]["href"]
        response, _ = client.send(later)
        etag = response.headers["ETag"]

        assert client.get(later)["_links"]["later"]["href"] == later
        assert client.send(later, If_None_Match=etag)[0].status == 304

        shop.load({1: Status.PENDING})
        response, body = client.send(later, If_None_Match=etag)
        assert response.status == 200
        [payment] = json.loads(body)["_embedded"]["payments"]
        assert payment["status"] == Status.PENDING
