"""Saved filters belong to one user, or are shared with an organization. They apply to any organization and mode."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from payments.admin.payments.actions import FILTERS_MAX
from payments.models import SavedFilter
from tests.support.admin_site import create_staff
from tests.support.factories import OrganizationFactory, PaymentFactory

pytestmark = pytest.mark.also("citus")

LIST = "/admin/payments/payment/"
QUERY = "organization=1&mode=test&from=pt_1&status=failed&q=order&method="


@pytest.fixture(autouse=True)
def organizations(db: None) -> None:
    for number in (1, 2):
        PaymentFactory.create(organization=OrganizationFactory.create(id=number), test=True)


def save(client: Client, name: str, query: str = QUERY, **fields: str) -> str:
    """Save a filter and return the page after it."""
    page = client.post(f"{LIST}save-filter", {"name": name, "query": query, **fields}, follow=True)
    assert page.status_code in {200, 400}  # also the page of an invalid search
    return page.content.decode()


def saved() -> list[tuple[str, str]]:
    return list(SavedFilter.objects.order_by("name").values_list("name", "query"))


def links(page: str) -> dict[str, str]:
    """Return the targets of the page's saved filters."""
    found = re.findall(r'<li><a href="\?([^"]+)"[^>]*><bdi>([^<]+)</bdi></a>', page)
    return {name: query.replace("&amp;", "&") for query, name in found}


def test_filter_is_saved_and_applies_to_another_organization(admin_client: Client) -> None:
    page = save(admin_client, " Lost orders ")
    other = admin_client.get(LIST, {"organization": "2", "mode": "live"}).content.decode()

    assert saved() == [("Lost orders", "q=order&status=failed")]
    assert "The saved filter “Lost orders” was added." in page
    assert links(other) == {"Lost orders": "organization=2&mode=live&q=order&status=failed"}
    assert links(page)["Lost orders"] == "organization=1&mode=test&q=order&status=failed"
    assert 'aria-current="true"><bdi>Lost orders' in page


def test_filter_of_the_same_name_is_replaced(admin_client: Client) -> None:
    save(admin_client, "Week", "period=7d")
    page = save(admin_client, "Week", "period=30d")

    assert "The saved filter “Week” was replaced." in page
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
    assert "The saved filter “Filter 1” was replaced." in replaced
    assert len(saved()) == FILTERS_MAX


def test_filter_can_be_deleted(admin_client: Client) -> None:
    save(admin_client, "Week", "period=7d")

    fields = {"id": str(SavedFilter.objects.get().pk), "query": "mode=test&status=open"}
    page = admin_client.post(f"{LIST}delete-filter", fields, follow=True)
    again = [
        admin_client.post(f"{LIST}delete-filter", {"id": key}, follow=True) for key in (fields["id"], "x", "9" * 19)
    ]

    assert saved() == []
    assert "The saved filter “Week” was deleted." in page.content.decode()
    assert page.redirect_chain[0][0] == f"{LIST}?organization=1&mode=test&status=open"
    assert all("This saved filter does not exist any more." in other.content.decode() for other in again)


def test_users_have_their_own_filters(admin_client: Client) -> None:
    save(admin_client, "Week", "period=7d")
    client = Client()
    client.force_login(create_staff("clerk", "view_payment"))

    page = client.get(LIST).content.decode()
    client.post(f"{LIST}delete-filter", {"id": str(SavedFilter.objects.get().pk)})
    save(client, "Week", "period=30d")

    assert links(page) == {}
    assert {item.user.get_username(): item.query for item in SavedFilter.objects.select_related("user")} == {
        "admin": "period=7d",
        "clerk": "period=30d",
    }


def staff(name: str, *codenames: str, organizations: list[int]) -> Client:
    client = Client()
    client.force_login(create_staff(name, "view_payment", *codenames, organizations=organizations))
    return client


def test_shared_filter_is_for_all_who_see_the_organization(db: None) -> None:
    author, colleague, other = (
        staff(name, organizations=[number]) for name, number in zip("abc", (1, 1, 2), strict=True)
    )

    save(author, "Lost orders", is_shared="on")
    pages = [client.get(LIST).content.decode() for client in (author, colleague, other)]

    assert [*map(links, pages)] == [{"Lost orders": "organization=1&mode=live&q=order&status=failed"}] * 2 + [{}]
    assert ["Delete the saved filter" in page for page in pages] == [True, False, False]


def test_shared_filter_of_another_user_is_not_replaced(db: None) -> None:
    author, colleague = (staff(name, organizations=[1]) for name in "ab")
    save(author, "Week", "organization=1&period=7d", is_shared="on")

    refused = save(colleague, "Week", "organization=1&period=30d", is_shared="on")
    own = save(colleague, "Week", "organization=1&period=30d")

    assert "Another user shares a saved filter of this name. Choose another name." in refused
    assert "The saved filter “Week” was added." in own
    assert saved() == [("Week", "period=7d"), ("Week", "period=30d")]


@pytest.mark.parametrize(
    ("codenames", "number", "is_deleted"),
    [([], 1, False), (["change_organization"], 1, True), (["change_organization"], 2, False)],
)
def test_administrators_delete_shared_filters_of_their_organizations(
    db: None, codenames: list[str], number: int, is_deleted: bool
) -> None:
    save(staff("a", organizations=[1]), "Week", "organization=1&period=7d", is_shared="on")

    key = str(SavedFilter.objects.get().pk)
    staff("b", *codenames, organizations=[number]).post(f"{LIST}delete-filter", {"id": key})

    assert (saved() == []) is is_deleted


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
