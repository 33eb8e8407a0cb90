"""API keys in the admin: added, shown once, revoked. The history records it."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from payments.models import ApiKey, Organization
from tests.support.admin_site import create_staff
from tests.support.factories import ApiKeyFactory, OrganizationFactory

pytestmark = pytest.mark.also("citus")

ADD = "/admin/payments/apikey/add/"
CLICKS = 4
FILLED = {"organization": "1", "mode": "live", "scope": "read", "name": "Till", "expires_at": ""}


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=1, name="Books")


def new_form_id(client: Client) -> str:
    """Open the form, and return its ID."""
    return form_id_in(client.get(ADD).content.decode())


def form_id_in(page: str) -> str:
    [value] = re.findall(r'name="form_id" value="([^"]+)"', page)
    return str(value)


@pytest.fixture
def filled(admin_client: Client, organization: Organization) -> dict[str, str]:
    """Return the values of a filled form."""
    return FILLED | {"form_id": new_form_id(admin_client)}


def history() -> list[tuple[str, str]]:
    """Return the names of the changed objects and the changes, in order."""
    entries = LogEntry.objects.order_by("pk")
    return [(entry.object_repr, entry.get_change_message()) for entry in entries]


def status_with(client: Client, text: str) -> int:
    """Return the status of a request with a key."""
    return client.get("/v2/payments", headers={"Authorization": f"Bearer {text}"}).status_code


def test_new_key_is_shown_once_and_works(
    admin_client: Client, client: Client, organization: Organization, filled: dict[str, str]
) -> None:
    page = admin_client.post(ADD, filled)

    [text] = set(re.findall(r"live_\w+", page.content.decode()))
    key = ApiKey.objects.get()
    later = admin_client.get(f"/admin/payments/apikey/{key.pk}/change/").content.decode()
    assert "no-store" in page.headers["Cache-Control"]
    assert f"<code>{text[-4:]}</code>" in page.content.decode()
    assert f"curl -H &quot;Authorization: Bearer {text}&quot;" in page.content.decode().replace('"', "&quot;")
    assert (key.organization, key.mode, key.name, key.expires_at) == (organization, "live", "Till", None)
    assert status_with(client, text) == 200
    assert text not in later
    assert key.digest not in later
    assert text not in str(dict(admin_client.session))
    assert history() == [("Till (live)", "Added.")]


def test_form_preselects_the_organization_of_the_link(admin_client: Client, organization: Organization) -> None:
    OrganizationFactory.create(id=2, name="A Bakery")

    page = admin_client.get(ADD, {"organization": "1"}).content.decode()

    assert '<option value="1" selected>Books</option>' in page


def test_form_preselects_the_organization_that_pages_show_first(
    admin_client: Client, organization: Organization
) -> None:
    OrganizationFactory.create(id=2, name="A Bakery")

    page = admin_client.get(ADD).content.decode()

    assert '<option value="1" selected>Books</option>' in page


def test_form_names_the_extent_of_its_permission(admin_client: Client, organization: Organization) -> None:
    page = admin_client.get(ADD).content.decode()

    assert "Staff who can add keys can read and import the payments of all their organizations" in page


@pytest.mark.parametrize("time_zone", ["UTC", "Asia/Kolkata"])
def test_new_key_can_expire(admin_client: Client, filled: dict[str, str], settings: Settings, time_zone: str) -> None:
    settings.TIME_ZONE = time_zone
    expires_at = (timezone.now() + timedelta(days=2)).replace(second=0, microsecond=0)

    admin_client.post(ADD, {**filled, "expires_at": f"{expires_at:%Y-%m-%dT%H:%M}"})

    assert ApiKey.objects.get().expires_at == expires_at


@pytest.mark.parametrize(
    ("invalid", "error"),
    [
        ({"organization": "2"}, "Select a valid choice."),
        ({"mode": "both"}, "Select a valid choice."),
        ({"scope": "both"}, "Select a valid choice."),
        ({"name": ""}, "This field is required."),
        ({"name": "two\tparts"}, "A name is one line of text."),
        ({"expires_at": "2026-01-01T00:00"}, "Enter a time in the future."),
        ({"expires_at": "soon"}, "Enter a valid date/time."),
        ({"expires_at": "9999-12-31T23:59-23:59"}, "Enter a date in the years 1900 to 9998."),
    ],
)
def test_invalid_form_shows_the_error_and_creates_no_key(
    admin_client: Client, filled: dict[str, str], invalid: dict[str, str], error: str
) -> None:
    page = admin_client.post(ADD, filled | invalid)

    assert error in page.content.decode()
    assert not ApiKey.objects.exists()


def test_form_that_is_sent_again_adds_no_other_key(admin_client: Client, filled: dict[str, str]) -> None:
    first = admin_client.post(ADD, filled).content.decode()
    second = admin_client.post(ADD, filled | {"name": "Other"}).content.decode()

    key = ApiKey.objects.get()
    [text] = set(re.findall(r"live_\w+", first))
    assert "You already created this key" in second
    assert f'<a href="/admin/payments/apikey/{key.pk}/change/"><strong>Till</strong></a>' in second
    assert f"<code>{text[-4:]}</code>" in second
    assert text not in second + str(dict(admin_client.session))
    assert history() == [("Till (live)", "Added.")]


def test_form_that_is_opened_again_adds_another_key(admin_client: Client, filled: dict[str, str]) -> None:
    admin_client.post(ADD, filled)
    admin_client.post(ADD, filled | {"form_id": new_form_id(admin_client)})

    assert ApiKey.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_form_that_is_sent_several_times_at_once_adds_one_key(admin_client: Client, filled: dict[str, str]) -> None:
    def send(_: int) -> str:
        client = Client()
        client.cookies = admin_client.cookies
        with closing(connection):
            return client.post(ADD, filled).content.decode()

    with ThreadPoolExecutor(CLICKS) as clicks:
        pages = list(clicks.map(send, range(CLICKS)))

    assert sorted(page.count("You already created this key</h1>") for page in pages) == [0] + [1] * (CLICKS - 1)
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize("forge", ["", "1", "\0", "00000000000000000000000000000000:signature"])
def test_form_without_a_valid_id_shows_an_error_and_can_be_sent_again(
    admin_client: Client, filled: dict[str, str], forge: str
) -> None:
    page = admin_client.post(ADD, filled | {"form_id": forge}).content.decode()
    count = ApiKey.objects.count()
    admin_client.post(ADD, filled | {"form_id": form_id_in(page)})

    assert "This form was incomplete, or another user opened it." in page
    assert 'value="Till"' in page
    assert (count, ApiKey.objects.count()) == (0, 1)


def test_form_of_another_user_is_refused(client: Client, filled: dict[str, str]) -> None:
    client.force_login(User.objects.create_superuser("other"))
    client.handler.enforce_csrf_checks = False

    page = client.post(ADD, filled).content.decode()

    assert "another user opened it" in page
    assert not ApiKey.objects.exists()


def test_key_is_revoked_after_confirmation(admin_client: Client, client: Client, organization: Organization) -> None:
    key: ApiKey = ApiKeyFactory.create(organization=organization, name="Till")
    path = f"/admin/payments/apikey/{key.pk}/revoke/"

    confirmation = admin_client.get(path)
    before = status_with(client, vars(key)["text"])
    response = admin_client.post(path)

    assert "Revoke this key?" in confirmation.content.decode()
    assert before == 200
    assert (response.status_code, response["Location"]) == (302, f"/admin/payments/apikey/{key.pk}/change/")
    assert status_with(client, vars(key)["text"]) == 401
    assert history() == [("Till (live)", "Revoked.")]


def test_revoked_key_keeps_its_revocation_time(admin_client: Client, organization: Organization) -> None:
    yesterday = timezone.now() - timedelta(days=1)
    key: ApiKey = ApiKeyFactory.create(organization=organization, revoked_at=yesterday)

    admin_client.post(f"/admin/payments/apikey/{key.pk}/revoke/")

    key.refresh_from_db()
    assert key.revoked_at == yesterday
    assert history() == []
    assert "Revoke key" not in admin_client.get(f"/admin/payments/apikey/{key.pk}/change/").content.decode()


def test_key_cannot_be_changed_or_deleted(admin_client: Client, organization: Organization) -> None:
    key: ApiKey = ApiKeyFactory.create(organization=organization, name="Till")

    attempts = [
        admin_client.post(f"/admin/payments/apikey/{key.pk}/change/", FILLED | {"name": "Other"}),
        admin_client.post(f"/admin/payments/apikey/{key.pk}/delete/", {"post": "yes"}),
    ]

    key.refresh_from_db()
    assert [attempt.status_code for attempt in attempts] == [403, 403]
    assert key.name == "Till"


def test_form_of_a_key_cannot_be_saved_as_a_new_key(admin_client: Client, organization: Organization) -> None:
    key: ApiKey = ApiKeyFactory.create(organization=organization)

    response = admin_client.post(f"/admin/payments/apikey/{key.pk}/change/", FILLED | {"_saveasnew": "1"})

    assert response.status_code == 403
    assert ApiKey.objects.get() == key


@pytest.mark.parametrize(
    ("state", "times"),
    [
        ("Active", {}),
        ("Active", {"expires_at": timezone.now() + timedelta(days=1)}),
        ("Expired", {"expires_at": timezone.now() - timedelta(days=1)}),
        ("Revoked", {"expires_at": timezone.now() - timedelta(days=1), "revoked_at": timezone.now()}),
    ],
)
def test_list_shows_the_state_of_a_key(
    admin_client: Client, organization: Organization, state: str, times: dict[str, object]
) -> None:
    ApiKeyFactory.create(organization=organization, **times)

    page = admin_client.get("/admin/payments/apikey/").content.decode()

    assert re.findall(r'<span class="label \w+">(\w+)</span>', page) == [state]


def test_list_names_the_column_of_each_cell(admin_client: Client, organization: Organization) -> None:
    ApiKeyFactory.create(organization=organization, name='"Till"')

    row = admin_client.get("/admin/payments/apikey/").content.decode().partition("<tbody>")[2]

    titles = ["Name", "Ends in", "Organization", "Mode", "Scope", "Status", "Last used", "Created", "Expires"]
    assert re.findall(r'<t[dh] data-label="([^"]*)"', row) == titles
    assert "&quot;Till&quot;" in row


def test_list_says_that_a_key_was_never_used(admin_client: Client, organization: Organization) -> None:
    ApiKeyFactory.create(organization=organization, last_used_at=None)

    row = admin_client.get("/admin/payments/apikey/").content.decode().partition("<tbody>")[2]

    assert re.findall(r'<td[^>]* class="field-last_used">(.*?)</td>', row) == ["never"]


def test_list_shows_the_organization_of_a_key(admin_client: Client, organization: Organization) -> None:
    ApiKeyFactory.create(organization=organization)

    rows = admin_client.get("/admin/payments/apikey/").content.decode().partition("<tbody>")[2]

    assert "Books" in rows


@pytest.fixture
def ends(organization: Organization) -> dict[str, str]:
    """Return the ends of two keys by name."""
    keys = [ApiKeyFactory.create(organization=organization, name=name) for name in ("Shop", "Till")]
    return {key.name: vars(key)["text"][-4:] for key in keys}


def hints(client: Client, path: str, **parameters: str) -> list[str]:
    """Return the cells of the column "Ends in"."""
    page = client.get(path, parameters).content.decode()
    assert "Ends in" in page
    cells = re.findall(r'<td[^>]* class="field-hint">(.*?)</td>', page, re.DOTALL)
    return [re.sub(r"<[^>]*>|\s", "", cell) for cell in cells]


@pytest.mark.parametrize("path", ["/admin/payments/apikey/", "/admin/payments/organization/1/change/"])
def test_list_shows_the_end_of_each_key(admin_client: Client, ends: dict[str, str], path: str) -> None:
    assert hints(admin_client, path) == [ends["Till"], ends["Shop"]]


def test_key_is_found_by_its_end(admin_client: Client, ends: dict[str, str]) -> None:
    assert hints(admin_client, "/admin/payments/apikey/", q=ends["Till"]) == [ends["Till"]]


def test_page_of_a_key_shows_its_end(admin_client: Client, ends: dict[str, str]) -> None:
    key = ApiKey.objects.get(name="Till")

    page = admin_client.get(f"/admin/payments/apikey/{key.pk}/change/").content.decode()

    assert re.findall(r'Ends in:</label>\s*<div class="readonly">(.*?)</div>', page) == [ends["Till"]]


def test_staff_need_permissions_to_add_and_revoke_keys(client: Client, organization: Organization) -> None:
    key: ApiKey = ApiKeyFactory.create(organization=organization)
    client.force_login(create_staff("clerk", "view_apikey"))
    client.handler.enforce_csrf_checks = False

    page = client.get(f"/admin/payments/apikey/{key.pk}/change/")

    assert page.status_code == 200
    assert "Revoke key" not in page.content.decode()
    assert client.get(f"/admin/payments/apikey/{key.pk}/revoke/").status_code == 403
    assert client.post(f"/admin/payments/apikey/{key.pk}/revoke/").status_code == 403
    assert client.post(ADD, FILLED).status_code == 403


def test_forms_of_other_sites_cannot_add_or_revoke_keys(organization: Organization, admin_user: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    key: ApiKey = ApiKeyFactory.create(organization=organization)

    assert client.post(ADD, FILLED).status_code == 403
    assert client.post(f"/admin/payments/apikey/{key.pk}/revoke/").status_code == 403
    assert ApiKey.objects.get().revoked_at is None
