"""`distribute_payments`: its statements, their order, and what is left of them after an interruption.

The tests run without Citus. Tables and functions with the names of Citus replace it: they record their calls and remove
local rows. So the tests check that the command runs each statement once and in order, and reads its progress from the
catalogs. They do not check what Citus does with the statements.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from payments.management.distribution import State, TableState, read_state
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.sql import execute

pytestmark = pytest.mark.django_db

FAKE_CITUS = """
    CREATE TABLE pg_dist_node (groupid int);
    INSERT INTO pg_dist_node VALUES (0), (1);
    CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod "char", repmodel "char");
    CREATE FUNCTION create_reference_table(regclass) RETURNS void LANGUAGE sql
        AS $$ INSERT INTO pg_dist_partition VALUES ($1, 'n', 't') $$;
    CREATE FUNCTION create_distributed_table(regclass, text, colocate_with text DEFAULT 'default') RETURNS void
        LANGUAGE sql AS $$ INSERT INTO pg_dist_partition VALUES ($1, 'h', 's') $$;
    CREATE FUNCTION truncate_local_data_after_distributing_table(name regclass) RETURNS void LANGUAGE plpgsql
        AS $$ BEGIN EXECUTE 'TRUNCATE ' || name; END $$;
"""

DISTRIBUTED_TABLE = TableState(has_foreign_key=True, is_distributed=True, has_local_rows=False)
DISTRIBUTED = State(key_has_organization=True, has_reference=True, payments=DISTRIBUTED_TABLE, states=DISTRIBUTED_TABLE)

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
def citus(db: None) -> None:
    """Create the replacement of Citus, and a payment with its state."""
    execute(FAKE_CITUS)
    PaymentFactory.create(organization=OrganizationFactory.create(id=1))
    execute("SET CONSTRAINTS ALL IMMEDIATE")  # ALTER TABLE refuses pending checks of deferred constraints


def test_command_runs_these_statements(citus: None, run: Run, document: str) -> None:
    output, messages = run()

    assert output == document
    assert messages.splitlines() == [
        "Payments are distributed by organization.",
        "Next: start the service, then check the cluster (docs/citus.md)",
    ]
    assert read_state() == DISTRIBUTED


def test_dry_run_prints_the_same_statements_and_changes_nothing(citus: None, run: Run, document: str) -> None:
    before = read_state()

    output, messages = run("--dry-run")

    assert output == document
    assert messages.splitlines() == ["Nothing was changed.", "Next: run the same command without --dry-run"]
    assert read_state() == before


def test_second_run_changes_nothing(citus: None, run: Run) -> None:
    run()

    assert run() == ("", "Payments are already distributed. Nothing was changed.\n")


@pytest.mark.parametrize("count", range(10))
def test_command_continues_after_an_interruption(citus: None, run: Run, document: str, count: int) -> None:
    statements = document.splitlines(keepends=True)
    for statement in statements[:count]:
        execute(statement)

    output, _ = run()

    assert output == "".join(statements[count:])
    assert read_state() == DISTRIBUTED


def test_revisions_are_added_to_a_cluster_of_an_older_release(citus: None, run: Run, document: str) -> None:
    statements = document.splitlines(keepends=True)
    for statement in statements:
        if "payments_accessstate" not in statement:
            execute(statement)

    output, _ = run()

    assert output == "".join(
        statement for statement in statements if "payments_accessstate" in statement or "ANALYZE" in statement
    )
    assert read_state() == DISTRIBUTED


def test_without_payments_no_local_rows_are_removed(run: Run, document: str) -> None:
    execute(FAKE_CITUS)
    execute(
        "TRUNCATE payments_payment, payments_accessstate"
    )  # rows of other tests were rolled back, but still occupy space

    output, _ = run()

    assert output == "".join(
        statement for statement in document.splitlines(keepends=True) if "truncate" not in statement
    )
    assert read_state() == DISTRIBUTED


def test_failed_statement_ends_the_command(citus: None, run: Run) -> None:
    execute(
        "CREATE OR REPLACE FUNCTION create_distributed_table(regclass, text, colocate_with text DEFAULT 'default') "
        "RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'no worker responds'; END $$"
    )

    with (
        pytest.raises(CommandError, match=r"^The database failed: no worker responds\. Run the command again"),
        transaction.atomic(),
    ):
        run()

    assert read_state().payments.has_local_rows


def test_database_without_citus_is_refused(run: Run) -> None:
    before = connection.introspection.get_constraints(connection.cursor(), "payments_payment")

    with pytest.raises(CommandError, match=r"has no Citus.*CREATE EXTENSION citus"):
        run()

    assert connection.introspection.get_constraints(connection.cursor(), "payments_payment") == before


def test_citus_without_coordinator_address_is_refused(citus: None, run: Run) -> None:
    execute("DELETE FROM pg_dist_node WHERE groupid = 0")

    with pytest.raises(CommandError, match="citus_set_coordinator_host"):
        run()

    assert not read_state().key_has_organization


def test_database_with_unapplied_migrations_is_refused(citus: None, run: Run) -> None:
    MigrationRecorder(connection).migration_qs.filter(app="payments").latest("applied").delete()

    with pytest.raises(CommandError, match=r"manage\.py migrate"):
        run()

    assert not read_state().key_has_organization


def test_sqlite_is_refused(run: Run) -> None:
    with pytest.raises(CommandError, match="This database is SQLite"):
        run()
