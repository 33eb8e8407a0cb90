"""The OpenID provider of the settings, for django-allauth."""

from typing import Any

from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.core.cache import cache
from django.http import HttpRequest
from django.urls import reverse

from payments.admin.sign_in.claims import (
    ProviderError,
    check_algorithm,
    check_id_token,
    nonce_of,
    subject_of,
    used_claims,
)
from payments.conf import conf

CONFIGURATION_SECONDS = 600
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")


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
        """Return the claims that the policy uses. django-allauth stores them."""
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
