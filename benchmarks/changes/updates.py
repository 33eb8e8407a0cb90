"""Growth of the database while imports change all payments again and again."""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from benchmarks import dataset
from benchmarks.database import load_payments, log, postgresql, vacuum
from benchmarks.growth.importing import changed_lines, write
from benchmarks.growth.tables import execute
from payments.record import encode
from tests.support.connecting import connected_to
from tests.support.loading import store

PAYMENTS = 100_000
ROUNDS = 10
VACUUM_SECONDS_MAX = 300
POLL_SECONDS = 0.2

CHANGES = "`payments_change` with its primary key"
ALL = "all"
LENGTHS = {
    "`payments_payment`": "pg_table_size('payments_payment')",
    "its indexes": "pg_indexes_size('payments_payment')",
    "of these, `payment_change`": "pg_relation_size('payment_change')",
    CHANGES: "pg_total_relation_size('payments_change')",
    ALL: "pg_total_relation_size('payments_payment') + pg_total_relation_size('payments_change')",
}

Lengths = Mapping[str, int]


@dataclass(frozen=True)
class Growth:
    """Bytes of each part of the database before and after all updates."""

    payments: int
    before: Lengths
    after: Lengths

    def per_update(self, part: str) -> float:
        return (self.after[part] - self.before[part]) / (self.payments * ROUNDS)

    def cells(self, part: str) -> str:
        return f"{self.after[part] / self.payments:.0f} | {self.per_update(part):.1f}"

    @property
    def share_of_changes(self) -> float:
        return self.per_update(CHANGES) / self.per_update(ALL)


def measure_updates(*, rows: int) -> Iterator[str]:
    """Yield the lines of a table: imports without a pause, and imports that autovacuum follows."""
    count = min(rows, PAYMENTS)
    growths = [measure_growth(count, has_pauses=has_pauses) for has_pauses in (False, True)]
    yield (
        f"| {ROUNDS} updates of {count:,} payments | bytes per payment before | after, without pauses | per update "
        "| after, with autovacuum after each import | per update |"
    )
    yield "|---|---|---|---|---|---|"
    for part in LENGTHS:
        yield f"| {part} | {growths[0].before[part] / count:.0f} | {' | '.join(each.cells(part) for each in growths)} |"
    shares = " | ".join(f"| {growth.share_of_changes:.1%}" for growth in growths)
    yield f"| share of `payments_change` | | {shares} |"


def measure_growth(count: int, *, has_pauses: bool) -> Growth:
    """Import payments, change all of them again and again, and return the growth."""
    with postgresql() as (url, _), tempfile.TemporaryDirectory(prefix="payments-updates-") as directory:
        load_payments(url, dataset.records(count), count=count)
        path = Path(directory) / "records"
        write(path, (encode(record) + b"\n" for record in dataset.records(count)))
        with connected_to(url):
            vacuum()
            before = lengths()
            for number in range(ROUNDS):
                log(f"Updating {count:,} payments: round {number + 1} of {ROUNDS}")
                with autovacuum() if has_pauses else nullcontext():
                    store(line.strip() for line in changed_lines(path, number))
            return Growth(count, before, lengths())


def lengths() -> Lengths:
    [row] = execute(f"SELECT {', '.join(LENGTHS.values())}")
    return dict(zip(LENGTHS, row, strict=True))


@contextmanager
def autovacuum() -> Iterator[None]:
    """Wait after the block until autovacuum has run. It does not wait for its usual minute."""
    execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
    execute("SELECT pg_reload_conf()")
    before = count_vacuums()
    yield
    give_up_at = time.monotonic() + VACUUM_SECONDS_MAX
    while count_vacuums() == before:
        assert time.monotonic() < give_up_at, "Autovacuum has not run."
        time.sleep(POLL_SECONDS)


def count_vacuums() -> int:
    """Return how often autovacuum has vacuumed the payments table."""
    [(count,)] = execute("SELECT pg_stat_get_autovacuum_count('payments_payment'::regclass)")
    return int(count)
