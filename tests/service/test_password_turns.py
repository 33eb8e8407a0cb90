"""Pages that hash passwords wait for their turn. Without a turn, the response is 429."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from payments.admin.login import ACCOUNT_ATTEMPTS
from payments.runtime.password_queue import PasswordQueue
from payments.runtime.process import process
from tests.support.password_turns import (
    RecordingHasher,
    hashing,
    hashing_until_a_request_waits,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_hasher")]

ADDRESS = "192.0.2.1"
LOGIN = "/admin/login/"
RIGHT, NEW = "right-password", "new-password-7"

# The path of each form with a password, its fields, and what the page hashes.
FORMS = {
    "login": (LOGIN, {"username": "baker", "password": RIGHT}, [RIGHT]),
    "wrong password": (LOGIN, {"username": "baker", "password": "wrong"}, ["wrong"]),
    "unknown user": (LOGIN, {"username": "unknown", "password": "wrong"}, ["wrong"]),
    "change": (
        "/admin/password_change/",
        {"old_password": RIGHT, "new_password1": NEW, "new_password2": NEW},
        [RIGHT, NEW],
    ),
    "new user": (
        "/admin/auth/user/add/",
        {"username": "clerk", "usable_password": "true", "password1": NEW, "password2": NEW},
        [NEW],
    ),
    "password of a user": (
        "/admin/auth/user/1000/password/",
        {"usable_password": "true", "password1": NEW, "password2": NEW, "set-password": "1"},
        [NEW],
    ),
}

in_each_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests wait as long as a test may take."""
    monkeypatch.setattr(process, "password_queue", PasswordQueue(wait_seconds_max=60))


@pytest.fixture
def admin() -> User:
    admin = User.objects.create_superuser("baker", id=1000, password=RIGHT)
    RecordingHasher.hashed.clear()
    return admin


def send(form: str, user: User | None = None) -> Any:
    """Send a form, as a user in a session unless it is a login."""
    path, fields, _ = FORMS[form]
    client = Client()
    if user and path != LOGIN:
        client.force_login(user)
    return client.post(path, fields, REMOTE_ADDR=ADDRESS)


@in_each_form
def test_form_is_refused_while_its_address_hashes(admin: User, patient: None, form: str) -> None:
    users = list(User.objects.values("username", "password"))

    with hashing_until_a_request_waits(ADDRESS):
        response = send(form, admin)

    assert response.status_code == 429
    assert response.headers["Retry-After"] == "3"
    assert response.headers["Cache-Control"] == "no-store"
    assert "Go back, wait a few seconds, and send the form again." in response.content.decode()
    assert RecordingHasher.hashed == []
    assert list(User.objects.values("username", "password")) == users


@in_each_form
def test_form_waits_while_another_address_hashes(admin: User, patient: None, form: str) -> None:
    with hashing_until_a_request_waits():
        response = send(form, admin)

    assert response.status_code == (200 if "wrong" in FORMS[form][2] else 302)
    assert RecordingHasher.hashed == FORMS[form][2]


@in_each_form
def test_form_is_refused_after_the_longest_wait(admin: User, impatient: None, form: str) -> None:
    with hashing():
        response = send(form, admin)

    assert response.status_code == 429
    assert RecordingHasher.hashed == []


def test_page_that_hashes_nothing_does_not_wait(admin: User, impatient: None) -> None:
    with hashing(ADDRESS):
        assert Client().get(LOGIN, REMOTE_ADDR=ADDRESS).status_code == 200


def test_refused_attempts_do_not_count_towards_the_login_limits(admin: User, impatient: None) -> None:
    with hashing():
        refused = {send("login").status_code for _ in range(ACCOUNT_ATTEMPTS.events_max + 1)}

    assert refused == {429}
    assert send("login").status_code == 302


def test_attempt_over_the_login_limit_does_not_wait(admin: User, impatient: None) -> None:
    for _ in range(ACCOUNT_ATTEMPTS.events_max):
        send("wrong password")

    with hashing():
        response = send("login")

    assert response.status_code == 429
    assert "Too many login attempts." in response.content.decode()
