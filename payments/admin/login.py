"""The admin's login form, which limits the number of attempts."""

import logging
from math import ceil
from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from payments.access.clients import client_address
from payments.runtime.process import process
from payments.runtime.rate_limits import RateLimit

# The first limit is for one account from one address, the second for any accounts from one address. A limit per account
# from all addresses would let an attacker lock the owner out.
ACCOUNT_ATTEMPTS = RateLimit(10, seconds=600)
ADDRESS_ATTEMPTS = RateLimit(50, seconds=600)

logger = logging.getLogger(__name__)


class LoginForm(AdminAuthenticationForm):
    """Counts the attempt before it checks the password, so that a refused attempt reveals nothing."""

    wait_seconds = 0.0

    def clean(self) -> dict[str, Any]:
        self.wait_seconds = count_attempt(self.request, account=self.cleaned_data.get("username", ""))
        if self.wait_seconds:
            message = "Too many login attempts. Try again in %(minutes)s min."
            raise ValidationError(message, code="too_many_attempts", params={"minutes": ceil(self.wait_seconds / 60)})
        return super().clean()


def count_attempt(request: HttpRequest | None, *, account: str) -> float:
    """Count a login attempt; return for how many seconds it is refused, or 0 if it is allowed."""
    address = client_address(request.META) if request else ""
    wait_seconds = max(
        process.rate_limits.count(f"login {address}", ADDRESS_ATTEMPTS).wait_seconds,
        process.rate_limits.count(f"login {address} {account.casefold()}", ACCOUNT_ATTEMPTS).wait_seconds,
    )
    if wait_seconds:
        logger.warning("Too many login attempts from %s.", address)
    return wait_seconds
