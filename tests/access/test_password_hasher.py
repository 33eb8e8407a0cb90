"""A worker hashes one password at a time; stored hashes stay valid."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password
from pytest_django import Settings

from payments.runtime.process import process
from payments_site.settings import PASSWORD_HASHERS
from tests.support.password_hashing import RecordingHasher
from tests.support.waiting import SECONDS_MAX

pytestmark = [pytest.mark.usefixtures("quick_hasher"), pytest.mark.once]

STRONGER = PBKDF2PasswordHasher().encode("right", "salt", RecordingHasher.iterations + 1)
WEAKER = PBKDF2PasswordHasher().encode("right", "salt", RecordingHasher.iterations - 1)


@pytest.mark.parametrize(("password", "is_valid"), [("right", True), ("wrong", False)])
def test_hash_of_djangos_hasher_stays_valid(settings: Settings, password: str, is_valid: bool) -> None:
    settings.PASSWORD_HASHERS = PASSWORD_HASHERS

    assert check_password(password, STRONGER) is is_valid


def test_check_can_upgrade_a_hash() -> None:
    upgraded: list[str] = []

    check_password("right", WEAKER, setter=lambda password: upgraded.append(make_password(password)))

    assert RecordingHasher.hashed == ["right", "right"]
    assert f"${RecordingHasher.iterations}$" in upgraded[0]


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
def test_thread_waits_until_another_one_has_hashed(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        with process.shares.hashing:
            waiting = pool.submit(work)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.05)
            assert RecordingHasher.hashed == []
        waiting.result(timeout=SECONDS_MAX)

    assert RecordingHasher.hashed
