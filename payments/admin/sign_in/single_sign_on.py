"""The views of the sign-in at the OpenID provider: the redirect, and the return from there."""

import logging
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from math import ceil
from pathlib import Path
from traceback import extract_tb
from typing import TypeAlias

from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import get_random_string
from django.views.decorators.http import require_GET
from requests import RequestException

from payments.access.clients import client_address
from payments.admin.login import ADDRESS_ATTEMPTS, mark_as_limited
from payments.admin.sign_in.claims import ProviderError, nonce_of
from payments.admin.sign_in.pages import refusal, safe_next
from payments.admin.sign_in.provider import StaffOAuth2Adapter, staff_provider
from payments.conf import conf
from payments.runtime.process import process

View: TypeAlias = Callable[[HttpRequest], HttpResponse]

UNAVAILABLE = "The provider of your account does not respond correctly. Try again later, or ask your administrator."

STATE_CHARACTERS = 32

# Errors of libraries if the provider's answer is no OpenID Connect.
INVALID_ANSWER = (ArithmeticError, AttributeError, LookupError, OAuth2Error, RecursionError, TypeError, ValueError)

logger = logging.getLogger(__name__)


def describe_provider_error(error: Exception) -> str:
    """Return an error for the log. Messages of libraries can contain tokens: their type and their place cannot."""
    if isinstance(error, ProviderError):
        return str(error)
    place = extract_tb(error.__traceback__)[-1]
    return f"{type(error.__cause__ or error).__name__} ({Path(place.filename).name}, line {place.lineno})"


def limited(view: View) -> View:
    """Limit the requests of an address, and respond with a page if the provider fails.

    Each request can cause requests to the provider, and writes a session.
    """

    @wraps(view)
    def limited_view(request: HttpRequest) -> HttpResponse:
        address = client_address(request.META)
        wait_seconds = process.rate_limits.count(f"sign-in {address}", ADDRESS_ATTEMPTS).wait_seconds
        if wait_seconds:
            minutes = ceil(wait_seconds / 60)
            response = refusal(request, f"Too many sign-ins from your address. Try again in {minutes} min.")
            mark_as_limited(response, wait_seconds)
            return response
        try:
            return view(request)
        except (ProviderError, RequestException, *INVALID_ANSWER) as error:
            logger.warning("The OpenID provider failed: %s", describe_provider_error(error))
            return refusal(request, UNAVAILABLE, status=HTTPStatus.BAD_GATEWAY)

    return limited_view


@require_GET
@limited
def redirect_to_provider(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider. Only `next` is used of the query string."""
    next_url = safe_next(request, request.GET.get("next"))
    state = get_random_string(STATE_CHARACTERS)
    response: HttpResponse = staff_provider(request).redirect(
        request, process=AuthProcess.LOGIN, next_url=next_url, state_id=state, auth_params={"nonce": nonce_of(state)}
    )
    return response


@require_GET
@limited
def callback(request: HttpRequest) -> HttpResponse:
    """Log in the user whom the provider confirms."""
    adapter = StaffOAuth2Adapter(request, conf.OIDC_ISSUER)
    response: HttpResponse = OAuth2CallbackView.adapter_view(adapter)(request)
    return response
