"""Keys in the admin: made, shown this once, revoked; each of it in the history."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from payments.models import ApiKey, Organization
from tests.support.factories import ApiKeyFactory, OrganizationFactory

ADD = "/admin/payments/apikey/add/"
FILLED = {"organization": "1", "mode": "live", "name": "Till", "expires_at": ""}


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=1, name="Books")


def history() -> list[tuple[str, str]]:
    entries = LogEntry.objects.order_by("pk")
    return [(entry.object_repr, entry.get_change_message()) for entry in entries]


def status_with(client: Client, text: str) -> int:
    return client.get("/v2/payments", headers={"Authorization": f"Bearer {text}"}).status_code


def test_a_key_that_is_made_is_shown_once_and_works(
    admin_client: Client, client: Client, organization: Organization
) -> None:
    page = admin_client.post(ADD, FILLED)

    [text] = set(re.findall(r"live_\w+", page.content.decode()))
    key = ApiKey.objects.get()
    again = admin_client.get(f"/admin/payments/apikey/{key.pk}/change/").content.decode()
    assert "no-store" in page.headers["Cache-Control"]
    assert f"curl -H &quot;Authorization: Bearer {text}&quot;" in page.content.decode().replace('"', "&quot;")
    assert (key.organization, key.mode, key.name, key.expires_at) == (organization, "live", "Till", None)
    assert status_with(client, text) == 200
    assert text not in again
    assert key.digest not in again
    assert history() == [("Till (live)", "Added.")]


def test_a_key_can_have_an_end(admin_client: Client, organization: Organization) -> None:
    ends_at = (timezone.now() + timedelta(days=2)).replace(second=0, microsecond=0)

    admin_client.post(ADD, {**FILLED, "expires_at": f"{ends_at:%Y-%m-%dT%H:%M}"})

    assert ApiKey.objects.get().expires_at == ends_at


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"organization": "2"}, "Select a valid choice."),
        ({"mode": "both"}, "Select a valid choice."),
        ({"name": ""}, "This field is required."),
        ({"name": "two\tparts"}, "A name is one line of text."),
        ({"expires_at": "2026-01-01T00:00"}, "This is not in the future."),
        ({"expires_at": "soon"}, "Enter a valid date/time."),
        ({"expires_at": "9999-12-31T23:59-23:59"}, "This is beyond the calendar."),
    ],
)
def test_what_is_wrong_with_a_key_is_said_and_none_is_made(
    admin_client: Client, organization: Organization, wrong: dict[str, str], told: str
) -> None:
    page = admin_client.post(ADD, FILLED | wrong)

    assert told in page.content.decode()
    assert not ApiKey.objects.exists()


def test_a_key_is_revoked_once_it_is_confirmed(
    admin_client: Client, client: Client, organization: Organization
) -> None:
    key: ApiKey = ApiKeyFactory.create(organization=organization, name="Till")
    path = f"/admin/payments/apikey/{key.pk}/revoke/"

    asked = admin_client.get(path)
    before = status_with(client, vars(key)["text"])
    done = admin_client.post(path)

    assert "Revoke this key?" in asked.content.decode()
    assert before == 200
    assert (done.status_code, done["Location"]) == (302, f"/admin/payments/apikey/{key.pk}/change/")
    assert status_with(client, vars(key)["text"]) == 401
    assert history() == [("Till (live)", "Revoked.")]


def test_a_key_that_is_revoked_keeps_its_time(admin_client: Client, organization: Organization) -> None:
    yesterday = timezone.now() - timedelta(days=1)
    key: ApiKey = ApiKeyFactory.create(organization=organization, revoked_at=yesterday)

    admin_client.post(f"/admin/payments/apikey/{key.pk}/revoke/")

    key.refresh_from_db()
    assert key.revoked_at == yesterday
    assert history() == []
    assert "Revoke this key" not in admin_client.get(f"/admin/payments/apikey/{key.pk}/change/").content.decode()


def test_a_key_is_not_changed_and_not_deleted(admin_client: Client, organization: Organization) -> None:
    key: ApiKey = ApiKeyFactory.create(organization=organization, name="Till")

    attempts = [
        admin_client.post(f"/admin/payments/apikey/{key.pk}/change/", FILLED | {"name": "Other"}),
        admin_client.post(f"/admin/payments/apikey/{key.pk}/delete/", {"post": "yes"}),
    ]

    key.refresh_from_db()
    assert [attempt.status_code for attempt in attempts] == [403, 403]
    assert key.name == "Till"


@pytest.mark.parametrize(
    ("state", "times"),
    [
        ("Usable", {}),
        ("Usable", {"expires_at": timezone.now() + timedelta(days=1)}),
        ("Expired", {"expires_at": timezone.now() - timedelta(days=1)}),
        ("Revoked", {"expires_at": timezone.now() - timedelta(days=1), "revoked_at": timezone.now()}),
    ],
)
def test_the_list_says_what_has_become_of_a_key(
    admin_client: Client, organization: Organization, state: str, times: dict[str, object]
) -> None:
    ApiKeyFactory.create(organization=organization, **times)

    page = admin_client.get("/admin/payments/apikey/").content.decode()

    assert re.findall(r'<span class="label \w+">(\w+)</span>', page) == [state]


def test_nobody_finds_out_how_a_digest_begins(admin_client: Client, organization: Organization) -> None:
    ApiKeyFactory.create(organization=organization)

    assert admin_client.get("/admin/payments/apikey/?digest__startswith=a").status_code == 400


def test_staff_make_and_revoke_keys_only_where_they_may(client: Client, organization: Organization) -> None:
    key: ApiKey = ApiKeyFactory.create(organization=organization)
    user = User.objects.create_user("clerk", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_apikey"))
    client.force_login(user)
    client.handler.enforce_csrf_checks = False

    page = client.get(f"/admin/payments/apikey/{key.pk}/change/")

    assert page.status_code == 200
    assert "Revoke this key" not in page.content.decode()
    assert client.get(f"/admin/payments/apikey/{key.pk}/revoke/").status_code == 403
    assert client.post(f"/admin/payments/apikey/{key.pk}/revoke/").status_code == 403
    assert client.post(ADD, FILLED).status_code == 403


def test_nothing_is_made_or_revoked_by_another_sites_form(organization: Organization, admin_user: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    key: ApiKey = ApiKeyFactory.create(organization=organization)

    assert client.post(ADD, FILLED).status_code == 403
    assert client.post(f"/admin/payments/apikey/{key.pk}/revoke/").status_code == 403
    assert ApiKey.objects.get().revoked_at is None
