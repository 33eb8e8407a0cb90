"""Every change of payments, and nothing else, gives their organization a new revision."""

from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from payments.ingest import import_payments
from payments.models import Organization
from tests.support.factories import OrganizationFactory
from tests.support.lines import line, source
from tests.support.sql import execute


@pytest.fixture
def organizations(db: None) -> None:
    """Two organizations, and a payment of the first."""
    for number in (1001, 1002):
        OrganizationFactory.create(id=number)
    load()


def load(**values: object) -> None:
    text = line(**{"id": "pt_1", "organizationId": "1001", **values})
    import_payments([source(text)], on_refused=lambda location, error: None)


def revisions() -> list[int]:
    return list(Organization.objects.filter(id__in=[1001, 1002]).order_by("id").values_list("revision", flat=True))


@pytest.mark.parametrize(
    ("action", "has_changed"),
    [
        (lambda: load(id="pt_2"), [True, False]),
        (lambda: load(description="other"), [True, False]),
        (lambda: load(id="pt_2", organizationId="1002"), [False, True]),
        (load, [False, False]),
        (lambda: load(createdAt="2001-01-01T00:00:00.000"), [False, False]),
        (lambda: call_command("create_demo_payments", count=50, verbosity=0), [True, True]),
        (lambda: call_command("anonymize_payments", f"--before={timezone.now():%Y-%m-%d}", verbosity=0), [True, False]),
        (lambda: call_command("anonymize_payments", "--before=2001-01-01", verbosity=0), [False, False]),
    ],
)
def test_only_changes_of_payments_renew_the_revision(
    organizations: None, action: Callable[[], None], has_changed: list[bool]
) -> None:
    before = revisions()

    action()

    assert [old != new for old, new in zip(before, revisions(), strict=True)] == has_changed


def test_revisions_do_not_repeat(organizations: None) -> None:
    distinct = set()
    for number in range(10):
        load(description=str(number))
        distinct.add(revisions()[0])

    assert len(distinct) == 10


def test_renaming_an_organization_keeps_a_concurrent_revision(
    admin_client: Client, organizations: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    concurrent: list[int] = []
    save = Organization.save

    def save_late(organization: Organization, **options: object) -> None:
        load(description="concurrent")
        concurrent.extend(revisions())
        save(organization, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Organization, "save", save_late)
    keys = {"keys-TOTAL_FORMS": "0", "keys-INITIAL_FORMS": "0"}

    admin_client.post("/admin/payments/organization/1001/change/", {"name": "Renamed", **keys})

    assert Organization.objects.get(id=1001).name == "Renamed"
    assert revisions() == concurrent


def test_organization_of_an_older_release_has_a_revision(db: None) -> None:
    """A release without revisions may still run after the migration."""
    execute("INSERT INTO payments_organization (id, name) VALUES (7, 'Books')")

    assert Organization.objects.get(id=7).revision == 0
