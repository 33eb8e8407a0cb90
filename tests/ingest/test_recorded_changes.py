"""Imports and commands that change payments renew the revisions of their organizations and modes, and no other."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from payments.ingest import import_payments
from payments.models import Access, AccessState, Organization
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory
from tests.support.lines import line, source
from tests.support.migrated import fresh_database
from tests.support.processes import ROOT
from tests.support.revisions import renewed_by, revisions, written_states
from tests.support.sql import execute

LIVE, TEST = Access(1001, "live"), Access(1001, "test")
OTHER_LIVE, OTHER_TEST = Access(1002, "live"), Access(1002, "test")


@pytest.fixture
def organizations(db: None) -> None:
    """Two organizations, and a live payment of the first."""
    for number in (1001, 1002):
        OrganizationFactory.create(id=number)
    load()


def load(*lines: bytes, **values: object) -> None:
    text = b"\n".join(lines) or line(**{"id": "pt_1", "organizationId": "1001", **values})
    import_payments([source(text)], on_refused=lambda location, error: None)


@pytest.mark.parametrize(
    ("action", "renewed"),
    [
        (lambda: load(id="pt_2"), {LIVE}),
        (lambda: load(id="pt_2", mode="test"), {TEST}),
        (lambda: load(description="other"), {LIVE}),
        (lambda: load(id="pt_2", organizationId="1002"), {OTHER_LIVE}),
        (
            lambda: load(line(id="pt_2", organizationId="1002"), line(id="pt_3", organizationId="1001", mode="test")),
            {TEST, OTHER_LIVE},
        ),
        (load, set()),
        (lambda: load(createdAt="2001-01-01T00:00:00.000"), set()),
        (lambda: call_command("create_demo_payments", count=50, verbosity=0), {LIVE, TEST, OTHER_LIVE}),
        (lambda: call_command("anonymize_payments", f"--before={timezone.now():%Y-%m-%d}", verbosity=0), {LIVE}),
        (lambda: call_command("anonymize_payments", "--before=2001-01-01", verbosity=0), set()),
    ],
)
def test_only_changes_of_payments_renew_the_revision(
    organizations: None, action: Callable[[], None], renewed: set[Access]
) -> None:
    assert renewed_by(action) & {LIVE, TEST, OTHER_LIVE, OTHER_TEST} == renewed


def test_revisions_do_not_repeat(organizations: None) -> None:
    distinct = set()
    for number in range(10):
        load(description=str(number))
        distinct.add(revisions()[LIVE])

    assert len(distinct) == 10


def test_import_locks_the_states_in_order(organizations: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        load(
            line(id="pt_2", organizationId="1002", mode="test"),
            line(id="pt_3", organizationId="1001", mode="test"),
            line(id="pt_4", organizationId="1002"),
            line(id="pt_5", organizationId="1001"),
        )

    assert written_states(queries) == [LIVE, TEST, OTHER_LIVE, OTHER_TEST]


def test_change_deletes_totals_only_after_it_has_locked_the_state(organizations: None) -> None:
    """Otherwise a process that sums the day could store totals without the change."""
    with CaptureQueriesContext(connection) as queries:
        load(id="pt_2")

    states, totals = (
        next(number for number, query in enumerate(queries) if query["sql"].startswith(start))
        for start in ('UPDATE "payments_accessstate"', 'DELETE FROM "payments_summedday"')
    )
    assert states < totals


DOCUMENT = (ROOT / "docs/reliability.md").read_text()
SQL = re.search(r"```sql\n(INSERT INTO payments_accessstate.*?)```", DOCUMENT, re.DOTALL)


def test_documented_sql_renews_the_revisions_of_all_payments(organizations: None) -> None:
    assert SQL is not None

    assert renewed_by(lambda: execute(SQL[1])) == {LIVE, TEST, OTHER_LIVE, OTHER_TEST}
    assert renewed_by(lambda: execute(SQL[1])) == {LIVE, TEST, OTHER_LIVE, OTHER_TEST}
    assert len(set(revisions().values())) == 4


def test_sql_without_a_revision_creates_a_state_that_has_never_changed(organizations: None) -> None:
    execute("INSERT INTO payments_accessstate (organization_id, mode) VALUES (1002, 'test')")

    assert revisions()[OTHER_TEST] == 0


# Migration 0009 moves revisions from organizations to their modes.


def old_revisions() -> dict[int, int]:
    return dict(execute("SELECT id, revision FROM payments_organization"))


def test_migration_moves_revisions_to_both_modes(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url, connected_to(url):
        call_command("migrate", "payments", "0008", verbosity=0)
        execute("INSERT INTO payments_organization (id, name, revision) VALUES (1, 'Books', 5), (2, 'Bikes', 0)")

        call_command("migrate", verbosity=0)

        assert revisions() == {
            Access(1, "live"): 5,
            Access(1, "test"): 5,
            Access(2, "live"): 0,
            Access(2, "test"): 0,
        }
        assert old_revisions() == {1: 5, 2: 0}


def test_reversed_migration_gives_changed_organizations_another_revision(tmp_path: Path) -> None:
    largest = 2**63 - 1
    with fresh_database(tmp_path) as url, connected_to(url):
        execute("INSERT INTO payments_organization (id, name, revision) VALUES (1, 'Books', 8), (2, 'Bikes', 8)")
        execute("INSERT INTO payments_organization (id, name, revision) VALUES (3, 'Shoes', 8), (4, 'Toys', 8)")
        for organization_id, live, test in [(1, 8, 8), (2, 8, 4), (3, largest, largest)]:
            AccessState.objects.create(organization_id=organization_id, mode="live", revision=live)
            AccessState.objects.create(organization_id=organization_id, mode="test", revision=test)

        call_command("migrate", "payments", "0008", verbosity=0)

        assert old_revisions() == {1: 8, 2: 6, 3: largest - 1, 4: 8}


def test_organization_of_an_older_release_keeps_the_default_revision(db: None) -> None:
    """The column stays for the old code. The new code inserts organizations without it."""
    Organization.objects.create(id=7, name="Books")

    assert old_revisions() == {7: 0}
