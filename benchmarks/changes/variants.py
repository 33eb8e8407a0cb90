"""Databases with the same payments and other changes."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from msgspec.structs import replace

from benchmarks import dataset
from benchmarks.changes import pages
from benchmarks.changes.positions import ACCESS, find_end
from benchmarks.changes.sizes import bytes_per_payment, size_table
from benchmarks.database import copied, log, vacuum
from benchmarks.growth.tables import execute
from payments.models import CHANGE_PAYMENTS_MAX, Change, Payment
from payments.record import encode
from tests.support.loading import store
from tests.support.service import Service

LARGE, SINGLE, UPGRADED = "large changes", "single changes", "after an upgrade"

TABLES = ["payments_payment", "payments_change"]
BEFORE_CHANGES = "0009_access_states"
EMPTY_CHANGES = 5000
FIRST_IMPORT = 100_000
FIRST_CHANGED = 20_000

# Changes with IDs as of one change after the other, a hundred per second.
CHANGES_PER_SECOND = 100
CHANGE_ID = (
    f"((extract(epoch FROM now())::bigint + number / {CHANGES_PER_SECOND}) << 31) + floor(random() * 2 ^ 31)::bigint"
)


def measure_variants(url: str, *, rows: int) -> Iterator[str]:
    """Yield the lines of two tables: pages and sizes of all variants."""
    sizes = {}
    yield from pages.HEADER
    yield from measure_first_import(url, count=min(rows, FIRST_IMPORT))
    with copied(url):
        yield from pages.measure_pages(LARGE)
        sizes[LARGE] = bytes_per_payment()
    with copied(url):
        make_single_changes()
        yield from pages.measure_pages(SINGLE)
        sizes[SINGLE] = bytes_per_payment()
        yield from measure_empty_changes()
    with copied(url) as copy:
        upgrade(copy)
        yield from pages.measure_pages(f"{UPGRADED}, not yet analyzed")
        vacuum()
        yield from pages.measure_pages(UPGRADED)
        sizes[UPGRADED] = bytes_per_payment()
        yield from measure_first_changes()
        change_all()
        yield from pages.measure_pages("all changed since, not yet analyzed")
    yield ""
    yield from size_table(sizes)


def measure_first_import(url: str, *, count: int) -> Iterator[str]:
    """Import payments into a new database, and yield the rows of its first page before the first ANALYZE."""
    with copied(urlsplit(url)._replace(path="/template1").geturl()) as new:
        Service(new).migrate()
        stop_autovacuum()
        log(f"Importing {count:,} payments into a new database")
        store(encode(record) for record in dataset.records(count))
        yield from pages.measure_beginning("first import")
        for table in TABLES:
            execute(f"VACUUM {table}")
        yield from pages.measure_beginning("first import, after VACUUM without ANALYZE")


def measure_empty_changes() -> Iterator[str]:
    """Move the payments of many changes to the end of the feed, and yield the rows of a page among these changes."""
    first = replace(find_end(), number=find_end().number // 2)
    moved = Change.objects.filter(**ACCESS._asdict(), number__range=(first.number, first.number + EMPTY_CHANGES - 1))
    stop_autovacuum()
    Payment.objects.visible_to(ACCESS).filter(change_id__in=moved.values("change_id")).update(description="Moved")
    name = f"in a run of {EMPTY_CHANGES:,} empty changes"
    yield from pages.measure_page(SINGLE, name, lambda _: first)
    vacuum()
    yield from pages.measure_page(SINGLE, f"{name}, after VACUUM", lambda _: first)


def measure_first_changes() -> Iterator[str]:
    """Change some payments after an upgrade, and yield the rows of a page that starts at the first change."""
    log(f"Changing {FIRST_CHANGED:,} payments")
    stop_autovacuum()
    ids = Payment.objects.visible_to(ACCESS).order_by("id").values("id")[:FIRST_CHANGED]
    Payment.objects.filter(id__in=ids).update(description="Changed")
    first = replace(find_end(), number=1)
    changes = f"{UPGRADED}, {FIRST_CHANGED:,} payments changed since"
    yield from pages.measure_page(f"{changes}, not yet analyzed", "at the first change", lambda _: first)
    execute("ANALYZE payments_change")
    yield from pages.measure_page(f"{changes}, payments_change analyzed", "at the first change", lambda _: first)


def make_single_changes() -> None:
    """Write all payments again, each with a change of its own, as if they had been created one after the other."""
    log("Making a change for each payment")
    execute("CREATE UNLOGGED TABLE rewritten AS TABLE payments_payment")
    number_changes(payments=1)
    assign_changes("rewritten")
    execute("TRUNCATE payments_payment")
    execute("INSERT INTO payments_payment SELECT * FROM rewritten ORDER BY id")
    execute("DROP TABLE rewritten")
    vacuum()


def change_all() -> None:
    """Change all payments, as an import does."""
    log("Changing all payments")
    stop_autovacuum()
    number_changes(payments=CHANGE_PAYMENTS_MAX)
    assign_changes("payments_payment")


def number_changes(*, payments: int) -> None:
    """Replace the changes by new ones, with so many payments each."""
    access = "organization_id, mode"
    execute(
        f"CREATE UNLOGGED TABLE numbered AS SELECT id, {access}, "  # noqa: S608
        f"(row_number() OVER (PARTITION BY {access} ORDER BY id) - 1) / {payments} + 1 AS number FROM payments_payment"
    )
    execute("TRUNCATE payments_change")
    execute(
        f"INSERT INTO payments_change ({access}, number, change_id) "  # noqa: S608
        f"SELECT {access}, number, {CHANGE_ID} FROM numbered GROUP BY {access}, number ORDER BY number"
    )
    execute(
        "UPDATE payments_accessstate AS state "  # noqa: S608
        "SET revision = newest.change_id, change_id = newest.change_id, change_number = newest.number "
        f"FROM (SELECT DISTINCT ON ({access}) * FROM payments_change ORDER BY {access}, number DESC) AS newest "
        "WHERE (state.organization_id, state.mode) = (newest.organization_id, newest.mode)"
    )


def assign_changes(table: str) -> None:
    """Write the IDs of the new changes into a table of payments."""
    execute(
        f"UPDATE {table} AS payment SET change_id = change.change_id "  # noqa: S608
        "FROM numbered JOIN payments_change AS change USING (organization_id, mode, number) "
        "WHERE payment.id = numbered.id"
    )


def upgrade(url: str) -> None:
    """Migrate the database to the release before changes were recorded, and back."""
    log("Migrating back and forth")
    stop_autovacuum()
    service = Service(url)
    service.migrate("payments", BEFORE_CHANGES)
    service.migrate()


def stop_autovacuum() -> None:
    """Keep the statistics of this database as they are."""
    for table in TABLES:
        execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
