"""The second factor of users: codes of an authenticator app (TOTP, RFC 6238), and recovery codes.

It uses functions of django-allauth that are not public, because the public ones remember used codes separately in each
process. Here, the database remembers the last used code of each user, so a code works once.
"""

import re
import time
from typing import Any, NamedTuple

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from payments.admin.login import SECOND_FACTOR_PASSED, LoginForm
from payments.admin.sessions import PENDING
from payments.conf import conf

# Of a login whose password was right and whose second factor is missing. The session belongs to no user until then.
SECONDS_MAX = 600
SECRET = "second_factor_secret"  # noqa: S105  the name of a value
BACKEND = "django.contrib.auth.backends.ModelBackend"

generate_secret = generate_totp_secret


def totp_of(user: User) -> QuerySet[Authenticator]:
    authenticators: QuerySet[Authenticator] = Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP)
    return authenticators


def has_second_factor(user: User) -> bool:
    return totp_of(user).exists()


def describe(user: User) -> str | None:
    """Return since when a user has a second factor, and how many recovery codes are left; None without one."""
    totp = totp_of(user).first()
    if totp is None:
        return None
    return f"Set up on {totp.created_at:%Y-%m-%d}, {recovery_codes_left(user)} recovery codes left."


def recovery_codes_left(user: User) -> int:
    codes = Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).first()
    return len(RecoveryCodes(codes).get_unused_codes()) if codes else 0


def accept_code(user: User, text: str) -> bool:
    """Return whether the text is a code of the user that was not used before, and remember that it was used."""
    code = re.sub(r"[\s-]", "", text)
    if accept_totp_code(user, code):
        return True
    authenticator = Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).first()
    return authenticator is not None and bool(RecoveryCodes(authenticator).validate_code(code))


@transaction.atomic
def accept_totp_code(user: User, code: str) -> bool:
    authenticator = totp_of(user).select_for_update().first()
    if authenticator is None:
        return False
    counter = counter_of(authenticator.data["secret"], code)
    if counter is None or counter <= authenticator.data["used_counter"]:
        return False
    authenticator.data["used_counter"] = counter
    authenticator.last_used_at = timezone.now()
    authenticator.save()
    return True


def accept_first_code(user: User, text: str, *, secret: str) -> list[str] | None:
    """Set up the second factor if the text is a code of this secret. Return the recovery codes, otherwise None."""
    counter = counter_of(secret, re.sub(r"\s", "", text))
    if counter is None:
        return None
    with transaction.atomic():
        data = {"secret": secret, "used_counter": counter}
        Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data=data)
        return renew_recovery_codes(user)


@transaction.atomic
def renew_recovery_codes(user: User) -> list[str]:
    User.objects.select_for_update().get(pk=user.pk)
    Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).delete()
    codes: list[str] = RecoveryCodes.activate(user).generate_codes()
    return codes


def remove(user: User) -> int:
    """Remove the second factor of a user with its recovery codes. Return the number of removed rows."""
    deleted, _ = Authenticator.objects.filter(user=user).delete()
    return int(deleted)


def counter_of(secret: str, code: str) -> int | None:
    """Return the number of the period to which a code belongs, near the current one; None if it is wrong."""
    counters: list[int] = list(yield_hotp_counters_from_time())
    matching = [
        counter for counter in counters if constant_time_compare(format_hotp_value(hotp_value(secret, counter)), code)
    ]
    return max(matching, default=None)


class FirstFactorForm(LoginForm):
    """Checks the password. A user who also needs a second factor gets an error, and is not logged in yet."""

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        if conf.SECOND_FACTOR == "required" or has_second_factor(user):
            self.second_factor_user = user
            raise ValidationError("Enter a code of your second factor.", code="second_factor")


class PendingLogin(NamedTuple):
    """A user whose password was right, and the address to continue at."""

    user: User
    next_url: str


def begin_login(request: HttpRequest, user: User, *, next_url: str) -> None:
    request.session.flush()  # it may belong to another user
    request.session[PENDING] = {
        "user": user.pk,
        "password": user.get_session_auth_hash(),
        "at": time.time(),
        "next": next_url,
    }


def find_pending_login(request: HttpRequest) -> PendingLogin | None:
    """Return the login that waits for a second factor; None if there is none, or if it is too old."""
    pending = request.session.get(PENDING)
    if request.user.is_authenticated or pending is None or time.time() - pending["at"] > SECONDS_MAX:
        return None
    user = User.objects.filter(pk=pending["user"], is_active=True, is_staff=True).first()
    if user is None or not constant_time_compare(user.get_session_auth_hash(), pending["password"]):
        return None
    return PendingLogin(user, pending["next"])


def complete_login(request: HttpRequest, user: User) -> None:
    """Log the user in. The session gets another key."""
    request.session.pop(PENDING, None)
    request.session.pop(SECRET, None)
    login(request, user, backend=BACKEND)
    request.session[SECOND_FACTOR_PASSED] = True
