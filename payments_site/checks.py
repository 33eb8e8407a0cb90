"""System checks of settings that are right one by one and wrong together: `manage.py check --deploy`."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host


@checks.register(checks.Tags.security, deploy=True)
def public_base_url_is_served(**_options: Any) -> list[checks.CheckMessage]:
    """Warn of a public address whose requests this service would refuse, or whose TLS it would not notice."""
    if not settings.PUBLIC_BASE_URL:
        return []
    found: list[checks.CheckMessage] = []
    address = urlsplit(settings.PUBLIC_BASE_URL)
    if not validate_host(address.hostname or "", settings.ALLOWED_HOSTS):
        found.append(
            checks.Warning(
                f"ALLOWED_HOSTS does not hold {address.hostname}, the host of PUBLIC_BASE_URL.",
                hint=f"Requests to the links would be refused: set ALLOWED_HOSTS={address.hostname}.",
                id="payments_site.W001",
            )
        )
    if settings.SERVED_OVER_TLS and not settings.TRUST_PROXY:
        found.append(
            checks.Warning(
                "PUBLIC_BASE_URL is https, but nothing tells this service which requests came over TLS.",
                hint="Have the proxy that ends TLS set X-Forwarded-Proto, and set TRUST_PROXY=true.",
                id="payments_site.W002",
            )
        )
    return found
