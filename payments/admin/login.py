"""The way into the admin, which nobody may try again and again."""

import logging
from math import ceil
from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from payments.access.clients import client_address
from payments.runtime.process import process
from payments.runtime.rate_limits import RateLimit

# One account from one address: somebody who forgot. One address, any account: somebody who guesses. An account has no
# limit of its own: with it, anybody could keep its owner out.
ACCOUNT_TRIES = RateLimit(10, seconds=600)
ADDRESS_TRIES = RateLimit(50, seconds=600)

logger = logging.getLogger(__name__)


class LoginForm(AdminAuthenticationForm):
    """Counts a try before it looks at the password, so that one too many learns nothing."""

    wait_seconds = 0.0

    def clean(self) -> dict[str, Any]:
        self.wait_seconds = count_try(self.request, account=self.cleaned_data.get("username", ""))
        if self.wait_seconds:
            message = "Too many tries to log in. Try again in %(minutes)s min."
            raise ValidationError(message, code="too_many_tries", params={"minutes": ceil(self.wait_seconds / 60)})
        return super().clean()


def count_try(request: HttpRequest | None, *, account: str) -> float:
    """Count a try to log in; return for how many seconds it is to be refused, 0 where it is not."""
    address = client_address(request.META) if request else ""
    wait = max(
        process.rate_limits.count(f"login {address}", ADDRESS_TRIES).wait_seconds,
        process.rate_limits.count(f"login {address} {account.casefold()}", ACCOUNT_TRIES).wait_seconds,
    )
    if wait:
        logger.warning("Too many tries to log in from %s.", address)
    return wait
