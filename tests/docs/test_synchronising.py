"""What docs/synchronising.md tells those who keep a copy does what it says, against the service."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb

from payments.models import Status
from payments.record import record_time
from tests.support.factories import NOON
from tests.support.lines import line
from tests.support.processes import ROOT
from tests.support.service import Service

DOCUMENT = (ROOT / "docs/synchronising.md").read_text()
BY_HAND, WITH_DLT = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)

MINUTES_A_DAY = 24 * 60

# The status of a payment that is created in each of these minutes.
Payments = Mapping[int, str]


@dataclass
class Shop:
    """Payments that come and change, and whoever keeps a copy of them in a directory of its own."""

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
        """Return the status of each, by its id, as a copy has it."""
        return {self.payment_id(minute): status for minute, status in payments.items()}

    def run(self, program: str) -> None:
        """Run a program as a client of this shop's."""
        key = self.service.create_api_key(organization=self.organization, mode="live")
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.directory,
            env={
                **os.environ,
                "PAYMENTS_URL": self.service.base_url,
                "PAYMENTS_KEY": key,
                "DLT_DATA_DIR": str(self.directory),  # else it is one for the whole machine
                "RUNTIME__DLTHUB_TELEMETRY": "false",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_a_copy_that_is_kept_by_hand_is_right_after_each_run(service: Service, tmp_path: Path) -> None:
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
    shop.run(BY_HAND)
    assert copied() == shop.statuses(payments)

    changed = {5: Status.EXPIRED, 590: Status.SUCCEEDED}
    new = dict.fromkeys(range(600, 610), Status.OPEN)
    shop.load(late | changed | new)
    shop.run(BY_HAND)
    assert copied() == shop.statuses(payments | late | changed | new)


def test_dlt_loads_what_is_new_and_reads_an_overlap_again(service: Service, tmp_path: Path) -> None:
    shop = Shop(9102, service, tmp_path)
    payments = {day * MINUTES_A_DAY: Status.OPEN for day in range(300)}

    def loaded() -> dict[str, str]:
        with closing(duckdb.connect(tmp_path / "payments.duckdb")) as copy:
            return dict(copy.execute("SELECT id, status FROM shop.payments").fetchall())

    shop.load(payments)
    shop.run(WITH_DLT)
    assert loaded() == shop.statuses(payments)

    within, before = {295 * MINUTES_A_DAY: Status.SUCCEEDED}, {290 * MINUTES_A_DAY: Status.SUCCEEDED}
    new = {300 * MINUTES_A_DAY: Status.PENDING}
    shop.load(within | before | new)
    shop.run(WITH_DLT)
    assert loaded() == shop.statuses(payments | within | new)
