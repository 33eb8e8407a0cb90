"""Organizations in the admin: the list, and an organization's page."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from payments.ingest import import_payments
from payments.models import Access, ImportRun, ImportTimes, ImportWay, Organization, StaffOrganization
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.lines import line, source

pytestmark = pytest.mark.also("citus")

LIST = "/admin/payments/organization/"


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=7, name="Books")


def test_list_shows_an_organization_with_its_active_keys(admin_client: Client, organization: Organization) -> None:
    ApiKeyFactory.create(organization=organization)

    rows = admin_client.get(LIST).content.decode().partition("<tbody>")[2]

    assert re.findall(r'<a href="/admin/payments/organization/7/change/">(\w+)</a>', rows) == ["7", "Books"]
    assert '<td data-label="Active keys" class="field-active_keys">1</td>' in rows
    assert '<a href="/admin/payments/payment/?organization=7">View payments</a>' in rows


@pytest.mark.parametrize("column", ["0", "1", "2", "3"])
def test_sorted_list_shows_an_organization_once(admin_client: Client, organization: Organization, column: str) -> None:
    PaymentFactory.create_batch(3, organization=organization)

    page = admin_client.get(LIST, {"o": column}).content.decode()

    assert page.count("View payments") == 1


def test_organization_can_be_renamed_but_keeps_its_id(admin_client: Client, organization: Organization) -> None:
    keys = {"keys-TOTAL_FORMS": "0", "keys-INITIAL_FORMS": "0"}

    admin_client.post(f"{LIST}7/change/", {"id": "8", "name": "Renamed", "time_zone": "UTC", **keys})

    organization.refresh_from_db()
    assert (organization.id, organization.name) == (7, "Renamed")


def test_other_time_zone_must_be_confirmed(admin_client: Client, organization: Organization) -> None:
    def save(**fields: str) -> str:
        fields |= {"name": "Books", "keys-TOTAL_FORMS": "0", "keys-INITIAL_FORMS": "0"}
        page = admin_client.post(f"{LIST}7/change/", fields, follow=True).content.decode()
        organization.refresh_from_db()
        return page

    first = save(time_zone="Europe/Amsterdam")
    unconfirmed = organization.time_zone
    other = save(time_zone="Asia/Kathmandu", confirmed_zone="Europe/Amsterdam")
    still_unconfirmed = organization.time_zone
    save(time_zone="Asia/Kathmandu", confirmed_zone="Asia/Kathmandu")

    assert "figures of closed months change" in first
    assert '<input type="hidden" name="confirmed_zone" value="Europe/Amsterdam"' in first
    assert "figures of closed months change" in other
    assert (unconfirmed, still_unconfirmed, organization.time_zone) == ("UTC", "UTC", "Asia/Kathmandu")


def test_question_about_the_time_zone_keeps_the_keys_on_the_page(
    admin_client: Client, organization: Organization
) -> None:
    key = ApiKeyFactory.create(organization=organization, name="Till")
    page = admin_client.get(f"{LIST}7/change/").content.decode()
    fields = dict(re.findall(r'<input type="hidden" name="(keys-[^"]+)" value="([^"]*)"', page))

    question = admin_client.post(f"{LIST}7/change/", {"name": "Books", "time_zone": "Asia/Kathmandu", **fields})

    assert fields["keys-0-id"] == f"{key.pk}"
    assert "figures of closed months change" in question.content.decode()
    assert re.findall(r'class="field-name_link"><a [^>]+>(\w+)<', question.content.decode()) == ["Till"]


@pytest.mark.parametrize("zone", ["", "Mars", "localtime", "europe/amsterdam", "../UTC"])
def test_unknown_time_zone_is_refused(admin_client: Client, organization: Organization, zone: str) -> None:
    fields = {"id": "8", "name": "Bikes", "time_zone": zone, "keys-TOTAL_FORMS": "0", "keys-INITIAL_FORMS": "0"}
    organization.time_zone = zone

    page = admin_client.post(f"{LIST}add/", fields).content.decode()

    assert 'class="errorlist"' in page
    assert not Organization.objects.filter(id=8).exists()
    with pytest.raises(ValidationError, match="Enter the IANA name of a time zone"):
        organization.save()


def test_new_organization_has_the_default_time_zone(
    admin_client: Client, organization: Organization, settings: Settings
) -> None:
    settings.PAYMENTS_DEFAULT_TIME_ZONE = "Europe/Amsterdam"

    page = admin_client.get(f"{LIST}add/").content.decode()

    assert '<option value="Europe/Amsterdam" selected>' in page
    assert Organization(id=8).time_zone == "Europe/Amsterdam"


def test_organization_page_lists_its_own_keys(admin_client: Client, organization: Organization) -> None:
    key = ApiKeyFactory.create(organization=organization, name="Till")
    ApiKeyFactory.create(name="Another's")

    page = admin_client.get(f"{LIST}7/change/").content.decode()

    assert f'<a href="/admin/payments/apikey/{key.pk}/change/">Till</a>' in page
    assert "Another" not in page


SHOWN = ("Last import by command", "Last failed import", "Newest payment", "Number of payments")


def import_for_7(**changes: Any) -> None:
    import_payments([source(line(organizationId="7", **changes))], on_refused=lambda location, error: None)


def shown_on_page(client: Client) -> dict[str, str]:
    """Return the read-only fields of the page by their labels."""
    page = client.get(f"{LIST}7/change/").content.decode()
    fields = re.findall(r'<label>([^<]+):</label>\s*<div class="readonly">(.*?)</div>', page, re.DOTALL)
    return {name: re.sub("<br>", "; ", re.sub(r"</?time[^>]*>", "", text)) for name, text in fields}


def test_organization_page_shows_the_last_imports_and_payments_of_each_mode(
    admin_client: Client, organization: Organization
) -> None:
    before = shown_on_page(admin_client)
    import_for_7()
    import_for_7(id="pt_2")
    import_for_7(id="pt_3", mode="test")
    import_for_7(id="pt_3", mode="live")
    starts = dict(zip("abcd", times_of_runs(), strict=True))

    shown = shown_on_page(admin_client)

    assert [before[name] for name in SHOWN] == ["Never", "None in 90 days", "No payments yet", "0"]
    assert [shown[name] for name in SHOWN] == [
        "Live: {b}; Test: {c}".format(**starts),
        "Live: {d}".format(**starts),
        "Live: 2018-03-20 13:28:37; Test: 2018-03-20 13:28:37",
        "Live: 2; Test: 1",
    ]


def times_of_runs() -> list[str]:
    """Return the times of the imports as the page shows them."""
    starts = ImportRun.objects.order_by("id").values_list("started_at", flat=True)
    return [f"{start:%Y-%m-%d %H:%M:%S}" for start in starts]


@pytest.mark.parametrize(("days", "note"), [(1, ""), (-3, " (late)")])
def test_organization_page_shows_when_the_next_import_is_late(
    admin_client: Client, organization: Organization, days: int, note: str
) -> None:
    Organization.objects.filter(id=7).update(time_zone="Asia/Kathmandu")
    day = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days)
    for number in range(4):
        start = day - timedelta(days=3 - number)
        ImportTimes.objects.record([Access(7, "test")], way=ImportWay.API, started_at=start)

    shown = shown_on_page(admin_client)

    assert shown["Last import by command"] == "Never"
    assert shown["Last import over the API"] == f"Test: {day:%Y-%m-%d} 05:45:00"
    assert shown["Next import before"] == f"Test: {day + timedelta(days=2):%Y-%m-%d} 05:45:00{note}"


def test_organization_page_counts_few_payments(
    admin_client: Client, organization: Organization, settings: Settings
) -> None:
    settings.PAYMENTS_SUMMED_PAYMENTS_MAX = 2
    for number in range(3):
        import_for_7(id=f"pt_{number}")

    assert shown_on_page(admin_client)["Number of payments"] == "Live: more than 2"


def test_organization_page_shows_payments_only_to_staff_who_may_view_them(organization: Organization) -> None:
    user = User.objects.create_user("clerk", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_organization"))
    StaffOrganization.objects.create(user=user, organization_id=7)
    client = Client()
    client.force_login(user)

    assert shown_on_page(client).keys() >= {*SHOWN[:2]}
    assert shown_on_page(client).keys().isdisjoint(SHOWN[2:])
