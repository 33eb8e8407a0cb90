"""How the session of a user began."""

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY
from django.http import HttpRequest

SINGLE_SIGN_ON = "payments.admin.sign_in.backend.SingleSignOnBackend"
SECOND_FACTOR_PASSED = "second_factor_passed"


def began_with_password(request: HttpRequest) -> bool:
    return bool(request.session.get(BACKEND_SESSION_KEY) != SINGLE_SIGN_ON)


def lacks_second_factor(request: HttpRequest) -> bool:
    """Return whether the session needs a second factor and has none: it began before the setting."""
    is_required = settings.SECOND_FACTOR == "required" and began_with_password(request)
    return is_required and not request.session.get(SECOND_FACTOR_PASSED)
