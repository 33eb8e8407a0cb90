"""How the session of a user began."""

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.http import HttpRequest

SINGLE_SIGN_ON = "payments.admin.sign_in.backend.SingleSignOnBackend"
SECOND_FACTOR_PASSED = "second_factor_passed"


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
    is_required = settings.SECOND_FACTOR == "required" and began_with_password(request)
    return is_required and not request.session.get(SECOND_FACTOR_PASSED)
