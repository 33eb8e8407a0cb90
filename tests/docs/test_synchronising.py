"""The programs of docs/synchronising.md keep a copy of the payments, with the deployed service."""

import os
import re
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb

from payments.models import Status
from payments.record import record_time
from tests.support.commands import output_of
from tests.support.factories import NOON
from tests.support.lines import line
from tests.support.processes import ROOT
from tests.support.service import Service

DOCUMENT = (ROOT / "docs/synchronising.md").read_text()
WITH_SQLITE, WITH_DLT = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)

MINUTES_A_DAY = 24 * 60

# The statuses of payments by the minute, after noon, in which they are created.
Payments = Mapping[int, str]


@dataclass
class Shop:
    """An organization whose payments change, and a directory with a copy of them."""

    organization: int
    service: Service
    directory: Path

    def load(self, payments: Payments) -> None:
        self.service.import_records(self.line(minute, status) for minute, status in payments.items())

    def line(self, minute: int, status: str) -> bytes:
        created_at = record_time(NOON + timedelta(minutes=minute))
        return line(
            id=self.payment_id(minute), organizationId=str(self.organization), createdAt=created_at, status=status
        )

    def payment_id(self, minute: int) -> str:
        return f"pt_{self.organization}at{minute}"

    def statuses(self, payments: Payments) -> dict[str, str]:
        """Return the statuses by ID, as a copy has them."""
        return {self.payment_id(minute): status for minute, status in payments.items()}

    def run(self, program: str) -> None:
        """Run a program with a key of this shop."""
        key = self.service.create_api_key(organization=self.organization, mode="live")
        output_of(
            [sys.executable, "-c", program],
            cwd=self.directory,
            env={
                **os.environ,
                "PAYMENTS_URL": self.service.base_url,
                "PAYMENTS_KEY": key,
                "DLT_DATA_DIR": str(self.directory),  # the default directory is shared by all programs
                "RUNTIME__DLTHUB_TELEMETRY": "false",
            },
        )


def test_copy_in_sqlite_is_current_after_each_run(service: Service, tmp_path: Path) -> None:
    shop = Shop(9101, service, tmp_path)
    late = {580: Status.SUCCEEDED}
    payments = {
        **{minute: Status.SUCCEEDED for minute in range(600) if minute not in late},
        5: Status.OPEN,
        590: Status.PENDING,
    }

    def copied() -> dict[str, str]:
        with closing(sqlite3.connect(tmp_path / "payments.sqlite3")) as copy:
            return dict(copy.execute("SELECT id, status FROM payments"))

    shop.load(payments)
    shop.run(WITH_SQLITE)
    assert copied() == shop.statuses(payments)

    changed = {5: Status.EXPIRED, 590: Status.SUCCEEDED}
    new = dict.fromkeys(range(600, 610), Status.OPEN)
    shop.load(late | changed | new)
    shop.run(WITH_SQLITE)
    assert copied() == shop.statuses(payments | late | changed | new)


def test_dlt_loads_new_payments_and_an_overlap(service: Service, tmp_path: Path) -> None:
    shop = Shop(9102, service, tmp_path)
    payments = {day * MINUTES_A_DAY: Status.OPEN for day in range(300)}

    def loaded() -> dict[str, str]:
        with closing(duckdb.connect(tmp_path / "payments.duckdb")) as copy:
            return dict(copy.execute("SELECT id, status FROM shop.payments").fetchall())

    shop.load(payments)
    shop.run(WITH_DLT)
    assert loaded() == shop.statuses(payments)

    in_overlap, before_overlap = {295 * MINUTES_A_DAY: Status.SUCCEEDED}, {290 * MINUTES_A_DAY: Status.SUCCEEDED}
    new = {300 * MINUTES_A_DAY: Status.PENDING}
    shop.load(in_overlap | before_overlap | new)
    shop.run(WITH_DLT)
    assert loaded() == shop.statuses(payments | in_overlap | new)
