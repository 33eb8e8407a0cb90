"""Logging in to the admin: attempts are limited, and sessions survive a new secret key."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from payments.admin.login import ACCOUNT_ATTEMPTS, ADDRESS_ATTEMPTS, DAY_ATTEMPTS
from payments.runtime.process import process
from payments.runtime.rate_limits import RateLimit

pytestmark = [pytest.mark.django_db, pytest.mark.once]

OLD, NEW = "the-old-key", "the-new-key"


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("baker", password="right-password")


def log_in(*, password: str, username: str = "baker", address: str = "192.0.2.1") -> Any:
    return Client().post("/admin/login/", {"username": username, "password": password}, REMOTE_ADDR=address)


def test_right_password_logs_in(admin: User) -> None:
    assert log_in(password="right-password").status_code == 302


@pytest.mark.parametrize(("fallbacks", "status"), [([OLD], 200), ([], 302)])
def test_session_survives_a_new_secret_key_if_the_old_one_is_a_fallback(
    admin: User, settings: Settings, fallbacks: list[str], status: int
) -> None:
    settings.SECRET_KEY = OLD
    client = Client()
    client.post("/admin/login/", {"username": "baker", "password": "right-password"})
    assert client.get("/admin/").status_code == 200

    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, fallbacks

    assert client.get("/admin/").status_code == status


def test_one_request_moves_a_session_to_the_new_secret_key(admin: User, settings: Settings) -> None:
    settings.SECRET_KEY = OLD
    client = Client()
    client.post("/admin/login/", {"username": "baker", "password": "right-password"})
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    client.get("/admin/")

    settings.SECRET_KEY_FALLBACKS = []

    assert client.get("/admin/").status_code == 200


def test_right_password_is_refused_after_too_many_attempts(admin: User) -> None:
    attempts = [log_in(password="wrong").status_code for _ in range(ACCOUNT_ATTEMPTS.events_max)]

    refused = log_in(password="right-password")

    assert set(attempts) == {200}
    assert refused.status_code == 429
    assert 590 < int(refused["Retry-After"]) <= 600
    assert "Too many attempts. Try again in 10 min." in refused.content.decode()


def test_attempts_from_another_address_do_not_lock_out_the_owner(admin: User) -> None:
    for _ in range(ACCOUNT_ATTEMPTS.events_max + 1):
        log_in(password="wrong")

    assert log_in(password="right-password", address="192.0.2.2").status_code == 302


def test_attempts_at_many_accounts_from_one_address_are_limited(admin: User) -> None:
    for number in range(ADDRESS_ATTEMPTS.events_max):
        log_in(password="wrong", username=f"user{number}")

    assert log_in(password="right-password").status_code == 429


def test_capital_letters_in_a_username_count_for_the_same_account(admin: User) -> None:
    for _ in range(ACCOUNT_ATTEMPTS.events_max):
        log_in(password="wrong", username="BAKER")

    assert log_in(password="right-password").status_code == 429


@pytest.mark.parametrize("form", [{}, {"username": "x\0"}, {"username": "x" * 10_000, "password": "x" * 10_000}])
def test_invalid_attempts_count_too(db: None, form: dict[str, str]) -> None:
    responses = [Client().post("/admin/login/", form) for _ in range(ACCOUNT_ATTEMPTS.events_max + 1)]

    assert {response.status_code for response in responses} == {200, 429}


def test_second_attempt_of_an_address_at_a_time_is_refused_and_does_not_count(admin: User) -> None:
    with process.shares.logins("192.0.2.1"):
        refused = [log_in(password="right-password") for _ in range(ACCOUNT_ATTEMPTS.events_max + 1)]
        other_address = log_in(password="right-password", address="192.0.2.2")

    assert {(response.status_code, response["Retry-After"]) for response in refused} == {(429, "1")}
    assert "Another password from this network is being checked." in refused[0].content.decode()
    assert other_address.status_code == 302
    assert log_in(password="right-password").status_code == 302


# Changing the password in an open session


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def change_password(client: Client, *, old: str, address: str = "192.0.2.1") -> Any:
    form = {"old_password": old, "new_password1": "another-right-password", "new_password2": "another-right-password"}
    return client.post("/admin/password_change/", form, REMOTE_ADDR=address)


def test_right_password_changes_the_password(admin: User) -> None:
    client = logged_in(admin)

    response = change_password(client, old="right-password")

    admin.refresh_from_db()
    assert response.status_code == 302
    assert admin.check_password("another-right-password")
    assert client.get("/admin/").status_code == 200


def test_right_password_does_not_change_it_after_too_many_attempts(admin: User) -> None:
    client, other = logged_in(admin), logged_in(admin)
    attempts = [
        change_password(client, old="wrong", address=f"192.0.2.{number}").status_code
        for number in range(ACCOUNT_ATTEMPTS.events_max)
    ]

    refused = change_password(other, old="right-password")

    admin.refresh_from_db()
    assert set(attempts) == {200}
    assert refused.status_code == 429
    assert 590 < int(refused["Retry-After"]) <= 600
    assert "no-store" in refused["Cache-Control"]
    assert "Too many attempts. Try again in 10 min." in refused.content.decode()
    assert admin.check_password("right-password")
    assert log_in(password="right-password").status_code == 302
    assert client.get("/admin/password_change/").status_code == 200


@pytest.mark.parametrize(
    ("name", "limit"),
    [("password 192.0.2.1", ADDRESS_ATTEMPTS), ("passwords of a day of user {user}", DAY_ATTEMPTS)],
)
def test_attempts_to_change_passwords_of_a_day_and_of_an_address_are_limited(
    admin: User, name: str, limit: RateLimit
) -> None:
    for _ in range(limit.events_max):
        process.rate_limits.count(name.format(user=admin.pk), limit)

    assert change_password(logged_in(admin), old="right-password").status_code == 429


def test_password_is_not_changed_while_another_is_checked(admin: User) -> None:
    with process.shares.logins("192.0.2.1"):
        refused = change_password(logged_in(admin), old="right-password")

    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
