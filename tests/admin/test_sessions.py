"""Sessions end when they are not used, some hours after the login, and with their user's right to use the admin."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from payments.admin.login import end_sessions
from payments.admin.sessions import SessionStore
from payments.conf import conf
from payments.models import StaffSession
from tests.support.sql import execute
from tests.support.threads import held_lock

pytestmark = pytest.mark.django_db

HOUR = 3600


@pytest.fixture
def ann(db: None) -> User:
    return User.objects.create_user("ann", is_staff=True)


@pytest.fixture
def client(ann: User) -> Client:
    return logged_in(ann)


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def is_logged_in(client: Client) -> bool:
    return client.get("/admin/").status_code == 200


def make_older(*, used: float = 0, began: float = 0) -> None:
    """Let the only session be used, and begin, so many seconds earlier."""
    session = StaffSession.objects.get()
    data = SessionStore().decode(session.session_data)
    data["used_at"] -= used
    data["began_at"] -= began
    session.session_data = SessionStore().encode(data)
    session.expire_date -= timedelta(seconds=used)
    session.save()


def remaining_seconds() -> float:
    return StaffSession.objects.get().expire_date.timestamp() - time.time()


# A change of a user


def save(user: User, *, is_active: bool, is_staff: bool) -> None:
    user.is_active, user.is_staff = is_active, is_staff
    user.save()


def update(user: User, **rights: bool) -> None:
    User.objects.filter(pk=user.pk).update(**rights)


def update_in_bulk(user: User, **rights: bool) -> None:
    User.objects.bulk_update([User(pk=user.pk, **rights)], list(rights))


def execute_sql(user: User, *, is_active: bool, is_staff: bool) -> None:
    execute(f"UPDATE auth_user SET is_active = {is_active}, is_staff = {is_staff}")  # noqa: S608  boolean values


@pytest.mark.parametrize("change", [save, update, update_in_bulk, execute_sql])
@pytest.mark.parametrize("right", ["is_active", "is_staff"])
@pytest.mark.parametrize("is_used", [True, False])
def test_user_without_rights_loses_the_session_for_ever(
    ann: User, client: Client, change: Callable[..., None], right: str, is_used: bool
) -> None:
    rights = {"is_active": True, "is_staff": True}
    before = is_logged_in(client)

    change(ann, **rights | {right: False})
    meanwhile = is_used and is_logged_in(client)
    change(ann, **rights)

    assert (before, meanwhile, is_logged_in(client)) == (True, False, False)
    assert is_logged_in(logged_in(ann))


def test_administrator_ends_the_sessions_of_a_user(ann: User, client: Client, admin_client: Client) -> None:
    page = f"/admin/auth/user/{ann.pk}/change/"
    form = {"username": "ann", "is_staff": "on", "date_joined_0": "2026-01-01", "date_joined_1": "12:00"}

    statuses = [admin_client.post(page, form | rights).status_code for rights in ({}, {"is_active": "on"})]

    assert statuses == [302, 302]
    assert not is_logged_in(client)
    assert is_logged_in(admin_client)


@pytest.mark.parametrize(
    "values", [{"last_name": "Baker"}, {"is_superuser": True}, {"is_active": True, "is_staff": True}]
)
def test_other_changes_of_a_user_end_no_session(ann: User, client: Client, values: dict[str, Any]) -> None:
    User.objects.filter(pk=ann.pk).update(**values)
    User.objects.create_user("bob", is_staff=True)
    User.objects.filter(username="bob").update(is_active=False)

    assert is_logged_in(client)


def test_login_that_waits_for_a_code_ends_with_the_rights(ann: User) -> None:
    session = SessionStore()
    session["pending_login"] = {"user": ann.pk}
    session.save()

    User.objects.update(is_active=False)

    assert not StaffSession.objects.exists()


def test_sessions_of_a_user_end_except_one(ann: User, client: Client, admin_client: Client) -> None:
    kept = logged_in(ann)

    ended = end_sessions(ann, except_key=kept.session.session_key)

    assert ended == 1
    assert [is_logged_in(each) for each in (client, kept, admin_client)] == [False, True, True]


# Age


def test_session_that_is_not_used_ends(client: Client) -> None:
    make_older(used=conf.SESSION_IDLE_SECONDS - 60)
    before = is_logged_in(client)
    make_older(used=conf.SESSION_IDLE_SECONDS)

    assert (before, is_logged_in(client)) == (True, False)


def test_use_extends_a_session(client: Client) -> None:
    make_older(used=conf.SESSION_IDLE_SECONDS / 2)

    client.get("/admin/")

    assert conf.SESSION_IDLE_SECONDS - 60 < remaining_seconds() <= conf.SESSION_IDLE_SECONDS


def test_use_is_not_written_for_each_page(client: Client) -> None:
    make_older(used=conf.SESSION_IDLE_SECONDS / 20)
    before = StaffSession.objects.values().get()

    client.get("/admin/")

    assert StaffSession.objects.values().get() == before


def test_session_ends_twelve_hours_after_the_login_although_it_is_used(client: Client) -> None:
    make_older(used=HOUR / 2, began=11.5 * HOUR)
    client.get("/admin/")
    remaining = remaining_seconds()
    make_older(used=HOUR / 4, began=HOUR / 4)
    client.get("/admin/")
    make_older(used=remaining_seconds())

    assert settings.SESSION_COOKIE_AGE == 12 * HOUR
    assert HOUR / 2 - 60 < remaining <= HOUR / 2
    assert not is_logged_in(client)


def test_write_of_the_session_does_not_extend_the_twelve_hours(client: Client) -> None:
    make_older(began=11.5 * HOUR)
    session = client.session
    session["choice"] = "live"
    session.save()

    assert remaining_seconds() <= HOUR / 2


@pytest.mark.django_db(transaction=True)
def test_page_does_not_wait_to_note_the_use_of_its_session(client: Client) -> None:
    make_older(used=conf.SESSION_IDLE_SECONDS / 2)

    with held_lock("payments_staffsession") as holder:
        status = client.get("/admin/").status_code
        was_released_first = not holder.is_alive()

    assert (status, was_released_first) == (200, False)
    assert remaining_seconds() <= conf.SESSION_IDLE_SECONDS / 2


def test_command_deletes_sessions_that_have_ended(client: Client) -> None:
    make_older(used=conf.SESSION_IDLE_SECONDS)

    call_command("clearsessions")

    assert not StaffSession.objects.exists()
