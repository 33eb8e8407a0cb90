"""Logging in to the admin: attempts are limited, and sessions survive a new secret key."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from payments.admin.login import ACCOUNT_ATTEMPTS, ADDRESS_ATTEMPTS
from payments.runtime.process import process

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
    assert "Too many login attempts. Try again in 10 min." in refused.content.decode()


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
    assert "Another login from this network is being checked." in refused[0].content.decode()
    assert other_address.status_code == 302
    assert log_in(password="right-password").status_code == 302
