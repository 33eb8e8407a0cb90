"""The admin's login form, which limits the number of attempts, and how the session of a user began."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from math import ceil
from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse

from payments.access.clients import client_address
from payments.conf import conf
from payments.models import StaffSession
from payments.runtime.process import process
from payments.runtime.rate_limits import RateLimit
from payments.runtime.shares import NoPlace

# The first limit is for one account from one address, the second for any accounts from one address. A limit per account
# from all addresses would let an attacker lock the owner out.
ACCOUNT_ATTEMPTS = RateLimit(10, seconds=600)
ADDRESS_ATTEMPTS = RateLimit(50, seconds=600)

# For one user from all addresses: only a client that has the password or a session can reach it. Without the limit, ten
# codes in ten minutes would find one of the three valid codes in months.
DAY_ATTEMPTS = RateLimit(50, seconds=86_400)

BUSY = "Another password from this network is being checked. Wait a second, and try again."
BUSY_SECONDS = 1

SINGLE_SIGN_ON = "payments.admin.sign_in.backend.SingleSignOnBackend"
SECOND_FACTOR_PASSED = "second_factor_passed"

logger = logging.getLogger(__name__)


class TooManyAttempts(Exception):
    """An attempt is refused. The message is for the user."""

    def __init__(self, message: str, wait_seconds: float) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


def count_attempt(limits: Mapping[str, RateLimit], *, address: str) -> None:
    """Count an attempt before its secret is checked, so that a refused attempt reveals nothing.

    :raises TooManyAttempts: if it exceeds one of the limits, by the name that is counted
    """
    wait_seconds = max(process.rate_limits.count(name, limit).wait_seconds for name, limit in limits.items())
    if wait_seconds:
        logger.warning("Too many attempts from %s.", address)
        raise TooManyAttempts(f"Too many attempts. Try again in {ceil(wait_seconds / 60)} min.", wait_seconds)


@contextmanager
def password_attempt(limits: Mapping[str, RateLimit], *, address: str) -> Iterator[None]:
    """Count an attempt, and check one password of an address at a time in the block.

    A further attempt meanwhile is refused and not counted.

    :raises TooManyAttempts:
    """
    try:
        with process.shares.logins(address):
            count_attempt(limits, address=address)
            yield
    except NoPlace:
        raise TooManyAttempts(BUSY, BUSY_SECONDS) from None


class LoginForm(AdminAuthenticationForm):
    """Limits the attempts to log in."""

    error_messages = {
        **AdminAuthenticationForm.error_messages,
        "invalid_login": "Wrong user name or password, or this account may not use the admin.",
    }
    wait_seconds = 0.0
    second_factor_user: User | None = None  # the password is right, and a code of the second factor is missing

    def clean(self) -> dict[str, Any]:
        address = client_address(self.request.META) if self.request else ""
        account = self.cleaned_data.get("username", "").casefold()
        limits = {f"login {address}": ADDRESS_ATTEMPTS, f"login {address} {account}": ACCOUNT_ATTEMPTS}
        try:
            with password_attempt(limits, address=address):
                return super().clean()
        except TooManyAttempts as error:
            self.wait_seconds = error.wait_seconds
            raise ValidationError(str(error), code="too_many_attempts") from None


def mark_as_limited(response: HttpResponse, wait_seconds: float) -> None:
    """Turn the response into one of status 429 that names the seconds to wait."""
    response.status_code = HTTPStatus.TOO_MANY_REQUESTS
    response.headers["Retry-After"] = str(ceil(wait_seconds))


def limits_of_user(user: User, *, kind: str, address: str) -> dict[str, RateLimit]:
    """Return the limits for a secret of a user whom the session names, by the name that is counted."""
    return {
        f"{kind} {address}": ADDRESS_ATTEMPTS,
        f"{kind} of user {user.pk}": ACCOUNT_ATTEMPTS,
        f"{kind}s of a day of user {user.pk}": DAY_ATTEMPTS,
    }


def began_with_password(request: HttpRequest) -> bool:
    return bool(request.session.get(BACKEND_SESSION_KEY) != SINGLE_SIGN_ON)


def end_sessions(user: User, *, except_key: str | None = None) -> int:
    """End the sessions of a user, except the one with this key. Return their number."""
    return StaffSession.objects.filter(user_id=str(user.pk)).exclude(session_key=except_key or "").delete()[0]


def lacks_second_factor(request: HttpRequest) -> bool:
    """Return whether the session needs a second factor and has none: it began before the setting."""
    is_required = conf.SECOND_FACTOR == "required" and began_with_password(request)
    return is_required and not request.session.get(SECOND_FACTOR_PASSED)
