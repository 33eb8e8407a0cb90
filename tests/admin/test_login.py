"""Logging in to the admin cannot be tried again and again."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from payments.admin.login import ACCOUNT_TRIES, ADDRESS_TRIES

pytestmark = pytest.mark.django_db

OLD, NEW = "the-old-key", "the-new-key"


@pytest.fixture(autouse=True)
def quick_passwords(settings: Settings) -> None:
    """What makes guessing slow makes tests slow."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("baker", password="right-password")


def log_in(*, password: str, username: str = "baker", address: str = "192.0.2.1") -> Any:
    return Client().post("/admin/login/", {"username": username, "password": password}, REMOTE_ADDR=address)


def test_whoever_knows_the_password_gets_in(admin: User) -> None:
    assert log_in(password="right-password").status_code == 302


@pytest.mark.parametrize(("fallbacks", "status"), [([OLD], 200), ([], 302)])
def test_who_is_logged_in_stays_so_under_a_new_secret_key_with_the_old_one_to_fall_back_to(
    admin: User, settings: Settings, fallbacks: list[str], status: int
) -> None:
    settings.SECRET_KEY = OLD
    client = Client()
    client.post("/admin/login/", {"username": "baker", "password": "right-password"})
    assert client.get("/admin/").status_code == 200

    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, fallbacks

    assert client.get("/admin/").status_code == status


def test_who_has_come_by_meanwhile_needs_the_old_secret_key_no_more(admin: User, settings: Settings) -> None:
    settings.SECRET_KEY = OLD
    client = Client()
    client.post("/admin/login/", {"username": "baker", "password": "right-password"})
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    client.get("/admin/")

    settings.SECRET_KEY_FALLBACKS = []

    assert client.get("/admin/").status_code == 200


def test_after_too_many_tries_the_right_password_helps_no_more(admin: User) -> None:
    tries = [log_in(password="wrong").status_code for _ in range(ACCOUNT_TRIES.events_max)]

    refused = log_in(password="right-password")

    assert set(tries) == {200}
    assert refused.status_code == 429
    assert 590 < int(refused["Retry-After"]) <= 600
    assert "Too many tries to log in. Try again in 10 min." in refused.content.decode()


def test_its_owner_is_not_kept_out_by_somebody_elses_tries(admin: User) -> None:
    for _ in range(ACCOUNT_TRIES.events_max + 1):
        log_in(password="wrong")

    assert log_in(password="right-password", address="192.0.2.2").status_code == 302


def test_whoever_guesses_accounts_is_refused_too(admin: User) -> None:
    for number in range(ADDRESS_TRIES.events_max):
        log_in(password="wrong", username=f"user{number}")

    assert log_in(password="right-password").status_code == 429


def test_an_account_is_the_same_in_capitals(admin: User) -> None:
    for _ in range(ACCOUNT_TRIES.events_max):
        log_in(password="wrong", username="BAKER")

    assert log_in(password="right-password").status_code == 429


@pytest.mark.parametrize("content", [{}, {"username": "x\0"}, {"username": "x" * 10_000, "password": "x" * 10_000}])
def test_nonsense_is_counted_and_answered(db: None, content: dict[str, str]) -> None:
    answers = {Client().post("/admin/login/", content).status_code for _ in range(ACCOUNT_TRIES.events_max + 1)}

    assert answers == {200, 429}
