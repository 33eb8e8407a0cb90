"""The admin's login form, which limits the number of attempts, and how the session of a user began."""

import logging
from http import HTTPStatus
from math import ceil
from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse

from payments.access.clients import client_address
from payments.conf import conf
from payments.runtime.process import process
from payments.runtime.rate_limits import RateLimit
from payments.runtime.shares import NoPlace

# The first limit is for one account from one address, the second for any accounts from one address. A limit per account
# from all addresses would let an attacker lock the owner out.
ACCOUNT_ATTEMPTS = RateLimit(10, seconds=600)
ADDRESS_ATTEMPTS = RateLimit(50, seconds=600)

BUSY = "Another login from this network is being checked. Wait a second, and try again."
BUSY_SECONDS = 1

SINGLE_SIGN_ON = "payments.admin.sign_in.backend.SingleSignOnBackend"
SECOND_FACTOR_PASSED = "second_factor_passed"

logger = logging.getLogger(__name__)


class LoginForm(AdminAuthenticationForm):
    """Counts the attempt before it checks the password, so that a refused attempt reveals nothing.

    It checks one password of an address at a time. A further attempt meanwhile is refused and not counted.
    """

    wait_seconds = 0.0
    second_factor_user: User | None = None  # the password is right, and a code of the second factor is missing

    def clean(self) -> dict[str, Any]:
        address = client_address(self.request.META) if self.request else ""
        try:
            with process.shares.logins(address):
                self.count_attempt(address)
                return super().clean()
        except NoPlace:
            self.wait_seconds = BUSY_SECONDS
            raise ValidationError(BUSY, code="busy") from None

    def count_attempt(self, address: str) -> None:
        limits = limits_of(address, account=self.cleaned_data.get("username", ""))
        self.wait_seconds = max(process.rate_limits.count(name, limit).wait_seconds for name, limit in limits.items())
        if self.wait_seconds:
            logger.warning("Too many login attempts from %s.", address)
            message = "Too many login attempts. Try again in %(minutes)s min."
            raise ValidationError(message, code="too_many_attempts", params={"minutes": ceil(self.wait_seconds / 60)})


def mark_as_limited(response: HttpResponse, wait_seconds: float) -> None:
    """Turn the response into one of status 429 that names the seconds to wait."""
    response.status_code = HTTPStatus.TOO_MANY_REQUESTS
    response.headers["Retry-After"] = str(ceil(wait_seconds))


def limits_of(address: str, *, account: str) -> dict[str, RateLimit]:
    """Return the limits for an attempt from an address to log in to an account, by the name that is counted."""
    return {f"login {address}": ADDRESS_ATTEMPTS, f"login {address} {account.casefold()}": ACCOUNT_ATTEMPTS}


def began_with_password(request: HttpRequest) -> bool:
    return bool(request.session.get(BACKEND_SESSION_KEY) != SINGLE_SIGN_ON)


def end_sessions(user: User, *, except_key: str | None = None) -> int:
    """End the sessions of a user, except the one with this key. Return their number.

    Cost: it reads all sessions, because their user is in their encoded data.
    """
    keys = [
        session.session_key
        for session in Session.objects.iterator()
        if session.session_key != except_key and session.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    return Session.objects.filter(session_key__in=keys).delete()[0]


def lacks_second_factor(request: HttpRequest) -> bool:
    """Return whether the session needs a second factor and has none: it began before the setting."""
    is_required = conf.SECOND_FACTOR == "required" and began_with_password(request)
    return is_required and not request.session.get(SECOND_FACTOR_PASSED)
