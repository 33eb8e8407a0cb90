"""Plans of PostgreSQL for an import with statistics of an empty table, and the statistics after an import."""

from pathlib import Path

import psycopg
import pytest

from payments.runtime.hooks import Hook, Progress
from tests.support.connecting import connected_to
from tests.support.hooks import registered
from tests.support.lines import line, store
from tests.support.migrated import fresh_database
from tests.support.sql import execute, fetch_value

pytestmark = pytest.mark.only("postgresql")

# More payments than PostgreSQL reads without an index.
PAYMENTS = 2000
ROWS = "SELECT reltuples FROM pg_class WHERE relname = 'payments_payment'"
SHARES = """
    SELECT word, share FROM pg_stats,
        unnest(most_common_vals::text::text[], most_common_freqs) AS frequent (word, share)
    WHERE tablename = 'payments_payment' AND attname = 'status'
"""
SCANS = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'payment_list'"


class VacuumDuringImport(Hook):
    """Vacuums the table before the import is committed, as autovacuum does after an import that failed."""

    def __init__(self, url: str) -> None:
        self.url = url

    def import_progressed(self, progress: Progress) -> None:
        with psycopg.connect(self.url, autocommit=True) as other:
            other.execute("VACUUM payments_payment")


def scans_of_the_list() -> int:
    execute("SELECT pg_stat_force_next_flush()")
    return int(fetch_value(SCANS))


def test_import_looks_payments_up_by_id_and_corrects_the_statistics(tmp_path: Path) -> None:
    lines = [line(id=f"pt_{number}", organizationId="1") for number in range(PAYMENTS)]
    with fresh_database(tmp_path) as url, connected_to(url):
        execute("ALTER TABLE payments_payment SET (autovacuum_enabled = off)")  # the import does not wait for it
        with registered(VacuumDuringImport(url)):
            store(lines)
        assert fetch_value(ROWS) == PAYMENTS  # pages need them as soon as the payments are committed
        execute("UPDATE pg_class SET reltuples = 0 WHERE relname = 'payments_payment'")  # as after an import that fails
        before = scans_of_the_list()

        assert store(lines).written == 0

        assert scans_of_the_list() == before
        assert fetch_value(ROWS) == PAYMENTS


@pytest.mark.parametrize(("number", "analyzed"), [(50, 1000), (200, 1200)])
def test_import_of_many_payments_updates_the_statistics(tmp_path: Path, number: int, analyzed: int) -> None:
    with fresh_database(tmp_path) as url, connected_to(url):
        execute("ALTER TABLE payments_payment SET (autovacuum_enabled = off)")
        store(line(id=f"pt_{each}") for each in range(1000))

        store(line(id=f"pt_later{each}") for each in range(number))

        assert fetch_value(ROWS) == analyzed


@pytest.mark.parametrize(("number", "shares"), [(100, {"open": 1.0}), (200, {"open": 0.8, "expired": 0.2})])
def test_import_that_changes_many_payments_updates_the_statistics(
    tmp_path: Path, number: int, shares: dict[str, float]
) -> None:
    with fresh_database(tmp_path) as url, connected_to(url):
        execute("ALTER TABLE payments_payment SET (autovacuum_enabled = off)")
        store(line(id=f"pt_{each}", status="open") for each in range(1000))

        store(line(id=f"pt_{each}", status="expired" if each < number else "open") for each in range(1000))

        assert dict(execute(SHARES)) == pytest.approx(shares)


def test_import_does_not_wait_to_correct_statistics(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url, connected_to(url), psycopg.connect(url) as other:
        store([line(id="pt_1")])
        execute("UPDATE pg_class SET reltuples = 0, relpages = 1 WHERE relname = 'payments_payment'")
        execute("SET lock_timeout = '5s'")  # of an import that waits
        other.execute("LOCK TABLE payments_payment IN SHARE UPDATE EXCLUSIVE MODE")  # as VACUUM does

        assert store([line(id="pt_2")]).written == 1
