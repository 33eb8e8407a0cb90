"""Imports and commands that change payments renew the revisions of their organizations and modes, and no other."""

import re
from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Count
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from payments.ingest import import_payments
from payments.models import CHANGE_PAYMENTS_MAX, Access, Change, Payment
from tests.support.factories import OrganizationFactory
from tests.support.lines import line, source
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


def test_change_has_at_most_the_maximum_of_payments(organizations: None) -> None:
    before = Change.objects.count()

    load(*(line(id=f"pt_x{number}", organizationId="1001") for number in range(2 * CHANGE_PAYMENTS_MAX + 1)))

    payments = Payment.objects.filter(id__startswith="pt_x").values("change_id").annotate(number=Count("id"))
    assert sorted(change["number"] for change in payments) == [1, CHANGE_PAYMENTS_MAX, CHANGE_PAYMENTS_MAX]
    assert Change.objects.count() == before + 3


DOCUMENT = (ROOT / "docs/reliability.md").read_text()
SQL = re.search(r"```sql\n(INSERT INTO payments_accessstate.*?)```", DOCUMENT, re.DOTALL)


@pytest.mark.only("postgresql")
def test_documented_sql_renews_the_revisions_of_all_payments(organizations: None) -> None:
    assert SQL is not None

    assert renewed_by(lambda: execute(SQL[1])) == {LIVE, TEST, OTHER_LIVE, OTHER_TEST}
    assert renewed_by(lambda: execute(SQL[1])) == {LIVE, TEST, OTHER_LIVE, OTHER_TEST}
    assert len(set(revisions().values())) == 4


def test_sql_without_a_revision_creates_a_state_that_has_never_changed(organizations: None) -> None:
    execute("INSERT INTO payments_accessstate (organization_id, mode) VALUES (1002, 'test')")

    assert revisions()[OTHER_TEST] == 0
