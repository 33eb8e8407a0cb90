"""Requests hash passwords in turn; stored hashes stay valid, and commands do not wait."""

from collections.abc import Callable

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django import Settings

from payments.runtime.password_queue import TooManyPasswordChecks
from payments.runtime.process import process
from payments_site.settings import PASSWORD_HASHERS
from tests.support.password_turns import RecordingHasher, hashing, hashing_until_a_request_waits

pytestmark = pytest.mark.usefixtures("quick_hasher")

ADDRESS = "192.0.2.1"
STRONGER = PBKDF2PasswordHasher().encode("right", "salt", RecordingHasher.iterations + 1)
WEAKER = PBKDF2PasswordHasher().encode("right", "salt", RecordingHasher.iterations - 1)


@pytest.mark.parametrize(("password", "is_valid"), [("right", True), ("wrong", False)])
def test_hash_of_djangos_hasher_stays_valid(settings: Settings, password: str, is_valid: bool) -> None:
    settings.PASSWORD_HASHERS = PASSWORD_HASHERS

    assert check_password(password, STRONGER) is is_valid


@pytest.mark.parametrize(
    "work",
    [
        lambda: make_password("new"),
        lambda: check_password("right", STRONGER),
        lambda: check_password("wrong", WEAKER),
        lambda: check_password("any", "!"),
    ],
    ids=["set", "check", "harden", "unusable"],
)
def test_request_without_a_turn_does_not_hash(impatient: None, work: Callable[[], object]) -> None:
    with hashing(), process.password_queue.request(ADDRESS), pytest.raises(TooManyPasswordChecks):
        work()

    assert RecordingHasher.hashed == []


def test_request_upgrades_a_hash_in_the_turn_of_its_check(impatient: None) -> None:
    upgraded: list[str] = []

    with process.password_queue.request(ADDRESS):
        check_password("right", WEAKER, setter=lambda password: upgraded.append(make_password(password)))

    assert RecordingHasher.hashed == ["right", "right"]
    assert f"${RecordingHasher.iterations}$" in upgraded[0]


def test_command_hashes_during_the_turn_of_a_request(
    db: None, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "right")

    with hashing():
        call_command("createsuperuser", interactive=False, username="baker", email="", verbosity=0)

    assert User.objects.get().check_password("right")


def test_waiting_and_hashing_do_not_count_towards_the_deadline_of_the_database() -> None:
    deadline = process.deadlines.database
    was_active: list[bool] = []

    with deadline, process.password_queue.request(ADDRESS):
        with hashing_until_a_request_waits(check=lambda: was_active.append(deadline.is_active)):
            make_password("new")
        was_active.append(deadline.is_active)

    assert was_active == [False, True]
