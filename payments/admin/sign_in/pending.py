"""A login whose password was right and whose second factor is missing. The session belongs to no user until then."""

import time
from typing import Any, NamedTuple

from django.contrib.auth import login
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from payments.admin.login import SECOND_FACTOR_PASSED, LoginForm
from payments.admin.sessions import PENDING
from payments.admin.sign_in.second_factor import has_second_factor
from payments.conf import conf

SECONDS_MAX = 600
SECRET = "second_factor_secret"  # noqa: S105  the name of a value
BACKEND = "django.contrib.auth.backends.ModelBackend"


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
