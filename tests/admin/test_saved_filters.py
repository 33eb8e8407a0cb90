"""Saved filters belong to one user, and apply to any organization and mode."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from payments.admin.payments.actions import FILTERS_MAX
from payments.models import SavedFilter
from tests.support.factories import OrganizationFactory, PaymentFactory

pytestmark = pytest.mark.also("citus")

LIST = "/admin/payments/payment/"
QUERY = "organization=1&mode=test&from=pt_1&status=failed&q=order&method="


@pytest.fixture(autouse=True)
def organizations(db: None) -> None:
    for number in (1, 2):
        PaymentFactory.create(organization=OrganizationFactory.create(id=number), test=True)


def save(client: Client, name: str, query: str = QUERY) -> str:
    """Save a filter and return the page after it."""
    page = client.post(f"{LIST}save-filter", {"name": name, "query": query}, follow=True)
    assert page.status_code == 200
    return page.content.decode()


def saved() -> list[tuple[str, str]]:
    return list(SavedFilter.objects.order_by("name").values_list("name", "query"))


def links(page: str) -> dict[str, str]:
    """Return the targets of the page's saved filters."""
    found = re.findall(r'<span class="saved-filter"><a href="\?([^"]+)"[^>]*>([^<]+)</a>', page)
    return {name: query.replace("&amp;", "&") for query, name in found}


def test_filter_is_saved_and_applies_to_another_organization(admin_client: Client) -> None:
    page = save(admin_client, " Lost orders ")
    other = admin_client.get(LIST, {"organization": "2", "mode": "live"}).content.decode()

    assert saved() == [("Lost orders", "q=order&status=failed")]
    assert "The filter “Lost orders” was saved." in page
    assert links(other) == {"Lost orders": "organization=2&mode=live&q=order&status=failed"}
    assert links(page)["Lost orders"] == "organization=1&mode=test&q=order&status=failed"
    assert 'aria-current="true">Lost orders' in page


def test_filter_of_the_same_name_is_replaced(admin_client: Client) -> None:
    save(admin_client, "Week", "period=7d")
    save(admin_client, "Week", "period=30d")

    assert saved() == [("Week", "period=30d")]


@pytest.mark.parametrize(
    ("name", "query", "error"),
    [
        ("", QUERY, "Name: This field is required."),
        ("x" * 61, QUERY, "Name: Ensure this value has at most 60 characters"),
        ("a\nb", QUERY, "Name: Use printable characters."),
        ("a\0b", QUERY, "Name: Null characters are not allowed."),
        ("a", "organization=1&mode=live", "Choose a filter or enter a search before you save it."),
        ("a", "status=lost", "Choose a filter or enter a search before you save it."),
    ],
)
def test_invalid_filter_is_not_saved(admin_client: Client, name: str, query: str, error: str) -> None:
    page = save(admin_client, name, query)

    assert error in page
    assert saved() == []


def test_number_of_filters_is_limited(admin_client: Client) -> None:
    user = User.objects.get()
    SavedFilter.objects.bulk_create(
        SavedFilter(user=user, name=f"Filter {number}", query="q=1") for number in range(FILTERS_MAX)
    )

    refused, replaced = save(admin_client, "One more"), save(admin_client, "Filter 1")

    assert "You have 50 saved filters. Delete one before you save another." in refused
    assert "The filter “Filter 1” was saved." in replaced
    assert len(saved()) == FILTERS_MAX


def test_filter_can_be_deleted(admin_client: Client) -> None:
    save(admin_client, "Week", "period=7d")

    page = admin_client.post(f"{LIST}delete-filter", {"name": "Week", "query": "mode=test&status=open"}, follow=True)
    again = admin_client.post(f"{LIST}delete-filter", {"name": "We\0ek"}, follow=True)

    assert saved() == []
    assert "The filter “Week” was deleted." in page.content.decode()
    assert page.redirect_chain[0][0] == f"{LIST}?organization=1&mode=test&status=open"
    assert "This filter does not exist any more." in again.content.decode()


def test_users_have_their_own_filters(admin_client: Client) -> None:
    save(admin_client, "Week", "period=7d")
    client, clerk = Client(), User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_payment"))
    client.force_login(clerk)

    page = client.get(LIST).content.decode()
    client.post(f"{LIST}delete-filter", {"name": "Week"})
    save(client, "Week", "period=30d")

    assert links(page) == {}
    assert {item.user.get_username(): item.query for item in SavedFilter.objects.select_related("user")} == {
        "admin": "period=7d",
        "clerk": "period=30d",
    }


@pytest.mark.parametrize("action", ["save-filter", "delete-filter", "columns"])
def test_actions_need_the_permission_and_a_form(client: Client, admin_client: Client, action: str) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))

    statuses = [
        client.post(LIST + action, {"name": "Week", "query": QUERY}).status_code,
        admin_client.get(LIST + action).status_code,
        Client().post(LIST + action).status_code,
    ]

    assert statuses == [403, 403, 302]
    assert saved() == []
