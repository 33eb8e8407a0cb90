"""An import records each status that it gives an existing payment, once."""

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from payments.ingest import import_payments
from payments.models import Organization, Payment, StatusChange
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory
from tests.support.held_imports import held_imports
from tests.support.lines import MISSING, line, source, store
from tests.support.migrated import fresh_database
from tests.support.threads import in_thread, wait_until_blocked

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

OPEN = {"status": "open", "paidAt": MISSING}


def statuses() -> list[tuple[str, str]]:
    return list(StatusChange.objects.order_by("payment_id", "change_id").values_list("payment_id", "status"))


def test_new_payments_have_no_status_changes(organization: Organization) -> None:
    store([line(), line(id="pt_2", **OPEN)])
    store([line(), line(id="pt_2", **OPEN), line(id="pt_3")])  # two are stored, so all are staged

    assert not StatusChange.objects.exists()


def test_only_changed_statuses_are_recorded(organization: Organization) -> None:
    other = OrganizationFactory.create(id=2)
    store([line(**OPEN), line(id="pt_2", **OPEN), line(id="pt_3", organizationId="2", mode="test", **OPEN)])

    store([line(), line(id="pt_2", description="other", **OPEN), line(id="pt_3", organizationId="2", mode="test")])

    assert statuses() == [("pt_1", "succeeded"), ("pt_3", "succeeded")]
    assert set(StatusChange.objects.values_list("organization_id", flat=True)) == {organization.id, other.id}
    stored = dict(Payment.objects.values_list("id", "change_id"))
    assert all(change.change_id == stored[change.payment_id] for change in StatusChange.objects.all())


def test_status_is_recorded_once_although_later_imports_change_the_payment(organization: Organization) -> None:
    for changes in (OPEN, {}, {"description": "other"}, {"description": "other"}):
        store([line(**changes)])

    assert statuses() == [("pt_1", "succeeded")]


def test_each_status_of_a_payment_is_recorded(organization: Organization) -> None:
    for changes in (OPEN, {**OPEN, "status": "pending"}, {}):
        store([line(**changes)])

    assert sorted(statuses()) == [("pt_1", "pending"), ("pt_1", "succeeded")]


@pytest.mark.parametrize(
    ("more", "options"),
    [([], {"dry_run": True}), ([b"nonsense"], {})],
    ids=["dry run", "refused record"],
)
def test_import_that_writes_nothing_records_no_status(
    organization: Organization, more: list[bytes], options: dict[str, Any]
) -> None:
    store([line(**OPEN)])

    import_payments([source(b"\n".join([line(), *more]))], on_refused=lambda location, error: None, **options)

    assert Payment.objects.get().status == "open"
    assert not StatusChange.objects.exists()


def test_payment_that_an_import_changes_is_no_longer_marked_as_anonymized(organization: Organization) -> None:
    store([line(), line(id="pt_2")])
    Payment.objects.update(anonymized_at=timezone.now())

    store([line(description="other"), line(id="pt_2")])

    assert Payment.objects.get(anonymized_at=None).id == "pt_1"


@pytest.mark.extended
@pytest.mark.only("postgresql", "citus")
@pytest.mark.parametrize("first", ["succeeded", "failed"])
def test_import_that_waits_records_only_the_status_that_it_sets(tmp_path: Path, first: str) -> None:
    """The second import compares the payments before the first one commits."""

    def succeeded() -> None:
        with connected_to(url):
            store([line(description="second"), line(id="pt_2", description="second")])

    with fresh_database(tmp_path) as url, connected_to(url):
        OrganizationFactory.create(id=1)
        store([line(**OPEN), line(id="pt_2", **OPEN)])
        with held_imports(url) as imports:
            held = imports.start()
            paid = {} if first == "succeeded" else {"paidAt": MISSING}
            held.write([line(id=id_, status=first, **paid) for id_ in ("pt_1", "pt_2")])
            thread = in_thread(succeeded)
            thread.start()
            wait_until_blocked(thread)
            held.commit()
            thread.join()

        expected = [(id_, status) for id_ in ("pt_1", "pt_2") for status in dict.fromkeys([first, "succeeded"])]
        assert sorted(statuses()) == expected
        assert set(Payment.objects.values_list("status", "description")) == {("succeeded", "second")}
