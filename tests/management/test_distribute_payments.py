"""`distribute_payments`: what it does to a database, in which order, and from wherever it was cut off.

There is no Citus here. Tables and functions of its names stand in for it: they note that they were called, and take
local rows away. So it is told that the command does each thing once, in order, and reads from the catalogs how far it
is; what Citus makes of its statements is not.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from payments.management.distribution import State, state
from tests.support.factories import OrganizationFactory, PaymentFactory

pytestmark = pytest.mark.django_db

STAND_IN = """
    CREATE TABLE pg_dist_node (groupid int);
    INSERT INTO pg_dist_node VALUES (0), (1);
    CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod "char", repmodel "char");
    CREATE FUNCTION create_reference_table(regclass) RETURNS void LANGUAGE sql
        AS $$ INSERT INTO pg_dist_partition VALUES ($1, 'n', 't') $$;
    CREATE FUNCTION create_distributed_table(regclass, text) RETURNS void LANGUAGE sql
        AS $$ INSERT INTO pg_dist_partition VALUES ($1, 'h', 's') $$;
    CREATE FUNCTION truncate_local_data_after_distributing_table(regclass) RETURNS void LANGUAGE sql
        AS $$ TRUNCATE payments_payment $$;
"""

DONE = State(
    key_has_organization=True, has_foreign_key=True, has_reference=True, is_distributed=True, has_local_rows=False
)

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command; return what it wrote to stdout and to stderr."""

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
    """Put the stand-in in place, and payments into the table."""
    execute(STAND_IN)
    PaymentFactory.create(organization=OrganizationFactory.create(id=1))
    execute("SET CONSTRAINTS ALL IMMEDIATE")  # what is deferred to a test's end would be in the way


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_payments_are_distributed_by_these_statements(citus: None, run: Run, document: str) -> None:
    output, words = run()

    assert output == document
    assert words.splitlines() == [
        "Payments are distributed by organization.",
        "Next: start the service anew, then docs/citus.md",
    ]
    assert state() == DONE


def test_a_dry_run_writes_the_same_and_changes_nothing(citus: None, run: Run, document: str) -> None:
    before = state()

    output, words = run("--dry-run")

    assert output == document
    assert words.splitlines() == ["Nothing was changed.", "Next: the same without --dry-run"]
    assert state() == before


def test_running_it_again_finds_nothing_to_do(citus: None, run: Run) -> None:
    run()

    assert run() == ("", "Payments are distributed already: there is nothing to do.\n")


@pytest.mark.parametrize("done", range(6))
def test_wherever_it_was_cut_off_it_goes_on(citus: None, run: Run, document: str, done: int) -> None:
    statements = document.splitlines(keepends=True)
    for statement in statements[:done]:
        execute(statement)

    output, _ = run()

    assert output == "".join(statements[done:])
    assert state() == DONE


def test_of_no_payments_there_is_nothing_local_to_take_away(run: Run, document: str) -> None:
    execute(STAND_IN)
    execute("TRUNCATE payments_payment")  # other tests' rows, though they were rolled back, take room

    output, _ = run()

    assert output == "".join(each for each in document.splitlines(keepends=True) if "truncate" not in each)
    assert state() == DONE


def test_where_a_statement_fails_those_behind_it_are_not_begun(citus: None, run: Run) -> None:
    execute(
        "CREATE OR REPLACE FUNCTION create_distributed_table(regclass, text) RETURNS void LANGUAGE plpgsql "
        "AS $$ BEGIN RAISE 'no worker answers'; END $$"
    )

    with (
        pytest.raises(CommandError, match=r"^The database failed: no worker answers\. Run it again: the rest"),
        transaction.atomic(),
    ):
        run()

    assert state().has_local_rows


def test_without_citus_it_says_what_to_do_and_does_nothing(run: Run) -> None:
    before = connection.introspection.get_constraints(connection.cursor(), "payments_payment")

    with pytest.raises(CommandError, match=r"has no Citus.*CREATE EXTENSION citus"):
        run()

    assert connection.introspection.get_constraints(connection.cursor(), "payments_payment") == before


def test_a_coordinator_that_workers_cannot_find_is_told_first(citus: None, run: Run) -> None:
    execute("DELETE FROM pg_dist_node WHERE groupid = 0")

    with pytest.raises(CommandError, match="citus_set_coordinator_host"):
        run()

    assert not state().key_has_organization


def test_a_database_that_is_not_migrated_is_not_distributed(citus: None, run: Run) -> None:
    MigrationRecorder(connection).migration_qs.filter(app="payments").latest("applied").delete()

    with pytest.raises(CommandError, match=r"manage\.py migrate"):
        run()

    assert not state().key_has_organization


def test_on_sqlite_it_says_that_it_is_the_wrong_database(run: Run) -> None:
    with pytest.raises(CommandError, match="This database is SQLite"):
        run()
