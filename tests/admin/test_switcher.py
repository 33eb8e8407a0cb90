"""The switcher selects an organization and a mode. Only it changes what a user sees next."""

import re

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from payments.admin.forms import MENU_CHOICES_MAX
from payments.models import StaffPreferences
from tests.support.admin_site import create_staff
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.list_errors import failing_queries

pytestmark = pytest.mark.also("citus")

LIST = "/admin/payments/payment/"
SWITCH = f"{LIST}switch/"
PAGES = ("/admin/", "/admin/report/", LIST)


@pytest.fixture(autouse=True)
def payments(db: None) -> None:
    for number, name in ((1, "Demo Books"), (2, "Demo Bikes"), (3, "Other")):
        PaymentFactory.create(id=f"pt_{number}", organization=OrganizationFactory.create(id=number, name=name))


@pytest.fixture
def clerk(db: None) -> Client:
    """A viewer of the organizations 1 and 2."""
    client = Client()
    client.force_login(create_staff("clerk", "view_payment", organizations=[1, 2]))
    return client


def titles(client: Client) -> list[str]:
    """Return the organizations and modes in the titles of the pages."""
    pages = [client.get(path).content.decode() for path in PAGES]
    return [re.sub(" · .* · ", " ", re.findall("<title>(.*) [|] Payments</title>", page)[0]) for page in pages]


def choices(page: str) -> list[str]:
    return re.findall(r'name="organization" value="([0-9]+)"[^>]*><bdi>', page)


def test_selection_applies_to_all_pages_and_is_remembered(clerk: Client) -> None:
    before = titles(clerk)
    response = clerk.post(SWITCH, {"organization": "2", "next": LIST})
    organization = titles(clerk)
    clerk.post(SWITCH, {"mode": "test", "next": LIST})

    assert response["Location"] == f"{LIST}?organization=2&mode=live"
    assert before == ["Demo Books Live"] * 3
    assert organization == ["Demo Bikes Live"] * 3
    assert titles(clerk) == ["Demo Bikes Test"] * 3


def test_colleagues_link_changes_nothing(clerk: Client) -> None:
    for path in PAGES:
        assert "Demo Bikes" in clerk.get(path, {"organization": "2", "mode": "test"}).content.decode()

    assert titles(clerk) == ["Demo Books Live"] * 3
    assert not StaffPreferences.objects.exists()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (
            f"{LIST}?organization=1&mode=live&status=failed&q=a+b&from=pt_1&before=50",
            f"{LIST}?{{}}&status=failed&q=a+b",
        ),
        ("/admin/report/?month=2026-10", "/admin/report/?month=2026-10&{}"),
        ("/admin/?period=7d&organization=1", "/admin/?period=7d&{}"),
        (f"{LIST}pt_5F1/change/?status=failed", f"{LIST}?{{}}"),
        ("/admin/payments/importrun/?before=5", "/admin/payments/importrun/?{}"),
        ("/admin/payments/paymentread/?user=ann", "/admin/payments/paymentread/?user=ann&{}"),
        ("/admin/payments/apikey/?q=a", "/admin/?{}"),
        ("/admin/unknown/", "/admin/?{}"),
        ("https://evil.example/admin/", "/admin/?{}"),
        ("//evil.example/admin/", "/admin/?{}"),
        ("", "/admin/?{}"),
    ],
)
def test_switch_leads_to_the_same_page(clerk: Client, address: str, expected: str) -> None:
    response = clerk.post(SWITCH, {"organization": "2", "mode": "test", "next": address})

    path, _, query = response["Location"].partition("?")
    assert (path, sorted(query.split("&"))) == (
        expected.partition("?")[0],
        sorted(expected.partition("?")[2].format("organization=2&mode=test").split("&")),
    )


@pytest.mark.parametrize(
    "fields", [{"organization": "3"}, {"organization": "99"}, {"organization": "x"}, {"mode": "x"}]
)
def test_foreign_and_unknown_organizations_get_the_same_response(clerk: Client, fields: dict[str, str]) -> None:
    page = clerk.post(SWITCH, {**fields, "next": LIST}, follow=True)

    assert "This organization does not exist. Choose another one." in page.content.decode()
    assert page.redirect_chain == [(LIST, 302)]
    assert not StaffPreferences.objects.exists()


def test_menu_has_the_organizations_of_the_user(clerk: Client, admin_client: Client) -> None:
    assert choices(clerk.get(LIST).content.decode()) == ["2", "1"]
    assert choices(admin_client.get("/admin/payments/apikey/").content.decode()) == ["2", "1", "3"]


@pytest.mark.parametrize(
    ("text", "expected"), [("demo", ["2", "1"]), ("2", ["2"]), ("3", []), ("Other", []), ("99", []), ("9" * 30, [])]
)
def test_organizations_are_found_by_name_and_id(clerk: Client, text: str, expected: list[str]) -> None:
    page = clerk.get(SWITCH, {"q": text, "next": LIST}).content.decode()

    assert choices(page.partition("<main")[2]) == expected
    assert ("No organization has this name or ID." in page) is (not expected)
    assert f'name="next" value="{LIST}"' in page


@pytest.mark.parametrize(("query", "text"), [("", "This field is required."), ("q=%00", "Null characters")])
def test_invalid_search_for_an_organization_shows_the_error(clerk: Client, query: str, text: str) -> None:
    assert text in clerk.get(f"{SWITCH}?{query}").content.decode()


@pytest.mark.parametrize(
    ("organizations", "has_search", "is_complete"),
    [(10, False, True), (11, True, True), (MENU_CHOICES_MAX, True, True), (MENU_CHOICES_MAX + 1, True, False)],
)
def test_long_menu_has_a_search_box(
    admin_client: Client, organizations: int, has_search: bool, is_complete: bool
) -> None:
    OrganizationFactory.create_batch(organizations - 3)

    page = admin_client.get(LIST).content.decode()

    assert len(choices(page)) == min(organizations, MENU_CHOICES_MAX)
    assert ("Find an organization" in page) is has_search
    assert ("These are the first" in page) is (not is_complete)


def test_page_is_shown_although_the_selection_cannot_be_stored(clerk: Client, caplog: pytest.LogCaptureFixture) -> None:
    StaffPreferences.objects.create(user=User.objects.get(username="clerk"), organization_id=1)

    with failing_queries("payments_staffpreferences", OperationalError("database is locked"), clause="UPDATE"):
        response = clerk.post(SWITCH, {"organization": "2", "next": LIST})

    assert response["Location"] == f"{LIST}?organization=2&mode=live"
    assert "The preferences of user" in caplog.text
    assert StaffPreferences.objects.get().organization_id == 1


def test_switcher_needs_the_permission_to_view_payments(client: Client) -> None:
    client.force_login(create_staff("clerk", "view_apikey"))

    page = client.get("/admin/").content.decode()
    statuses = [client.get(SWITCH).status_code, client.post(SWITCH, {"organization": "2"}).status_code]

    assert statuses == [403, 403]
    assert "Demo Bikes" not in page
