"""`distribute_payments` on a cluster: its statements, and how it continues after an interruption."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from payments.management.distribution import FOREIGN_KEYS, PAYMENTS, DistributionState, TableState, read_state
from payments.models import (
    Access,
    AccessState,
    DayKind,
    ImportPart,
    ImportRun,
    ImportTimes,
    ImportWay,
    Organization,
    Payment,
    StatusChange,
    SummedDay,
)
from payments.totals.daily import Calendar, sum_days
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.scale import IS_LONG
from tests.support.sql import execute, fetch_value

pytestmark = pytest.mark.only("citus")

DISTRIBUTED_TABLE = TableState(has_foreign_key=True, is_distributed=True, has_local_rows=False)
DISTRIBUTED = DistributionState(
    key_has_organization=True,
    has_reference=True,
    unknown=frozenset(),
    behind=frozenset(),
    tables=dict.fromkeys(FOREIGN_KEYS, DISTRIBUTED_TABLE),
)

# After how many statements the command is interrupted. Only the last statement, VACUUM, is not repeated: nothing in the
# catalogs shows that it is missing.
INTERRUPTIONS = range(1, 25) if IS_LONG else (1, 9, 17, 24)

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the command and returns its stdout and its stderr."""

    def run(*arguments: str) -> tuple[str, str]:
        call_command("distribute_payments", *arguments, stdout=sys.stdout, stderr=sys.stderr)
        written = capfd.readouterr()
        return written.out, written.err

    return run


@pytest.fixture
def document(documents: Path) -> str:
    return (documents / "distribute_payments.sql").read_text()


@pytest.fixture
def payments(local_tables: str) -> set[str]:
    """Store payments of several organizations and their history in undistributed tables, and return the IDs."""
    for number in range(1, 5):
        key = ApiKeyFactory.create(organization=OrganizationFactory.create(id=number))
        payment, *_ = PaymentFactory.create_batch(3, organization=key.organization)
        run = import_of(key.access)
        StatusChange.objects.create(
            organization=key.organization, payment_id=payment.id, change_id=1, status="failed", import_id=run.id
        )
        sum_days(Calendar(key.access, DayKind.CREATED, "UTC"), [NOON.date()])
        with transaction.atomic():
            ImportTimes.objects.record([key.access], way=ImportWay.COMMAND, started_at=NOON)
    return payment_ids()


def import_of(access: Access) -> ImportRun:
    run = ImportRun.objects.create(started_at=NOON)
    ImportPart.objects.create(run=run, **access._asdict())
    return run


def payment_ids() -> set[str]:
    return set(Payment.objects.values_list("id", flat=True))


def assert_distributed(payments: set[str]) -> None:
    """Assert that the tables are distributed and have all rows."""
    assert read_state() == DISTRIBUTED
    assert payment_ids() == payments
    assert AccessState.objects.exclude(revision=0).count() == 4
    assert StatusChange.objects.count() == 4
    assert ImportTimes.objects.filter(command_at=NOON).count() == 4
    assert import_of(Access(1, "live")).id == ImportPart.objects.latest("id").id == 5
    assert ApiKeyFactory.create(organization=Organization.objects.get(id=1)).id == 5
    sum_days(Calendar(Access(1, "live"), DayKind.PAID, "UTC"), [NOON.date()])
    assert SummedDay.objects.latest("id").id == 5
    assert fetch_value("SELECT count(DISTINCT nodeport) FROM citus_shards") == 3  # reference tables are everywhere


def test_command_runs_these_statements(payments: set[str], run: Run, document: str) -> None:
    output, messages = run()

    assert output == document
    assert messages.splitlines() == [
        "Payments are distributed by organization.",
        "Next: start the service (docs/citus.md)",
    ]
    assert_distributed(payments)


def test_dry_run_prints_the_same_statements_and_changes_nothing(payments: set[str], run: Run, document: str) -> None:
    before = read_state()

    output, messages = run("--dry-run")

    assert output == document
    assert messages.splitlines() == ["Nothing was changed.", "Next: run the same command without --dry-run"]
    assert read_state() == before


def test_second_run_changes_nothing(payments: set[str], run: Run) -> None:
    run()

    assert run() == ("", "Payments are already distributed. Nothing was changed.\n")
    assert_distributed(payments)


@pytest.mark.parametrize("count", INTERRUPTIONS)
def test_command_continues_after_an_interruption(payments: set[str], run: Run, document: str, count: int) -> None:
    statements = document.splitlines(keepends=True)
    for statement in statements[:count]:
        execute(statement)

    output, _ = run()

    assert output == "".join(statements[count:])
    assert_distributed(payments)


def test_failed_statement_ends_the_command(payments: set[str], run: Run) -> None:
    execute("CREATE UNIQUE INDEX own ON payments_payment (created_at, id)")

    with pytest.raises(CommandError, match=r"^The database failed: cannot create constraint.* Run the command again"):
        run()

    assert read_state().tables[PAYMENTS].has_local_rows
    assert payment_ids() == payments


def test_citus_without_coordinator_address_is_refused(local_tables: str, run: Run) -> None:
    execute("SELECT citus_remove_node(nodename, nodeport) FROM pg_dist_node WHERE groupid = 0")

    with pytest.raises(CommandError, match="citus_set_coordinator_host"):
        run()

    assert not read_state().key_has_organization
