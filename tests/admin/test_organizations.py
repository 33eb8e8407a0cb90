"""Organizations in the admin: the list, and an organization's page."""

import re

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from pytest_django import Settings

from payments.models import Organization
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.lines import line, store

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


def test_organization_page_shows_the_last_import_of_each_mode(admin_client: Client, organization: Organization) -> None:
    path = f"{LIST}7/change/"
    before = admin_client.get(path).content.decode()
    store([line(id="pt_1", organizationId="7"), line(id="pt_2", organizationId="7")])
    store([line(id="pt_1", organizationId="7", description="changed"), line(id="pt_2", organizationId="7")])
    store([line(id="pt_3", organizationId="7", mode="test")])
    store([line(id="pt_3", organizationId="7", mode="test")])

    page = admin_client.get(path).content.decode()

    assert "None yet" in before
    lines = re.findall(r"(live|test): <time [^>]+ UTC\">[-0-9: ]+</time>, (\d) payments new or changed", page)
    assert lines == [("live", "1"), ("test", "0")]
