"""The OpenID provider of the settings, for django-allauth, and the views: the redirect, and the return from there."""

import logging
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from math import ceil
from pathlib import Path
from traceback import extract_tb
from typing import Any, TypeAlias

from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.views.decorators.http import require_GET
from requests import RequestException

from payments.access.clients import client_address
from payments.admin.login import ADDRESS_ATTEMPTS, mark_as_limited
from payments.admin.sign_in.claims import (
    ProviderError,
    check_algorithm,
    check_id_token,
    nonce_of,
    subject_of,
    used_claims,
)
from payments.admin.sign_in.pages import refusal, safe_next
from payments.conf import conf
from payments.runtime.process import process

View: TypeAlias = Callable[[HttpRequest], HttpResponse]

UNAVAILABLE = "The provider of your account does not respond correctly. Try again later, or ask your administrator."

STATE_CHARACTERS = 32

CONFIGURATION_SECONDS = 600
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")

# Errors of libraries if the provider's answer is no OpenID Connect.
INVALID_ANSWER = (ArithmeticError, AttributeError, LookupError, OAuth2Error, RecursionError, TypeError, ValueError)

logger = logging.getLogger(__name__)


class StaffOAuth2Adapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """Requests to the provider. Its configuration is cached, so that pages without a sign-in cause few requests."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """Return the provider's configuration.

        :raises ProviderError: it is incomplete, or belongs to another provider (OpenID Connect Discovery, section 4.3)
        """
        configuration: dict[str, Any] | None = cache.get(conf.OIDC_ISSUER)
        if configuration is None:
            configuration = super().openid_config
            check_configuration(configuration)
            cache.set(conf.OIDC_ISSUER, configuration, CONFIGURATION_SECONDS)
        return configuration

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        path = reverse("admin:sign_in_callback")
        return f"{conf.PUBLIC_BASE_URL}{path}" if conf.PUBLIC_BASE_URL else request.build_absolute_uri(path)

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **options: Any) -> Any:
        check_algorithm(options["response"].get("id_token"))
        return super().complete_login(request, app, token, **options)


class StaffProvider(OpenIDConnectProvider):  # type: ignore[misc]  # allauth has no types
    """The provider of the settings. django-allauth calls the methods with both documents about an account."""

    oauth2_adapter_class = StaffOAuth2Adapter

    def extract_uid(self, data: dict[str, Any]) -> str:
        """Check the documents, and return the identifier of their account."""
        if not isinstance(data["userinfo"], dict):
            raise ProviderError("The user info is no object.")
        check_id_token(data["id_token"], nonce=nonce_of(self.request.GET["state"]))
        return subject_of(**data)

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the claims that are used. django-allauth stores them."""
        return used_claims(**data)

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        return {}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        return []


def staff_provider(request: HttpRequest) -> StaffProvider:
    app = SocialApp(
        provider="openid_connect",
        # Accounts are stored with the issuer: the same number at another provider is another account.
        provider_id=conf.OIDC_ISSUER,
        name=conf.OIDC_NAME,
        client_id=conf.OIDC_CLIENT_ID,
        secret=conf.OIDC_CLIENT_SECRET,
        settings={
            "server_url": f"{conf.OIDC_ISSUER.rstrip('/')}/.well-known/openid-configuration",
            "oauth_pkce_enabled": True,
            "scope": ["openid", "profile", "email"],
        },
    )
    return StaffProvider(request, app=app)


def check_configuration(configuration: Any) -> None:
    if not isinstance(configuration, dict) or configuration.get("issuer") != conf.OIDC_ISSUER:
        raise ProviderError("The configuration has another issuer than OIDC_ISSUER.")
    if missing := [name for name in ENDPOINTS if not isinstance(configuration.get(name), str)]:
        raise ProviderError(f"The configuration lacks {', '.join(missing)}.")
    is_encrypted = conf.OIDC_ISSUER.startswith("https://")
    if is_encrypted and not all(configuration[name].startswith("https://") for name in ENDPOINTS):
        raise ProviderError("The configuration has an address without https.")


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
