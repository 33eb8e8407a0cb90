"""System checks of settings that do not fit together, for `manage.py check --deploy`."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host

from payments.conf import conf


@checks.register(checks.Tags.security, deploy=True)
def public_base_url_is_served(**_options: Any) -> list[checks.CheckMessage]:
    """Warn if the service would refuse requests to PUBLIC_BASE_URL, or cannot know that they use TLS."""
    if not conf.PUBLIC_BASE_URL:
        return []
    warnings: list[checks.CheckMessage] = []
    address = urlsplit(conf.PUBLIC_BASE_URL)
    if not validate_host(address.hostname or "", settings.ALLOWED_HOSTS):
        warnings.append(
            checks.Warning(
                f"ALLOWED_HOSTS does not contain {address.hostname}, the host of PUBLIC_BASE_URL.",
                hint=f"The service refuses requests to its own links. Set ALLOWED_HOSTS={address.hostname}.",
                id="payments_site.W001",
            )
        )
    if settings.SERVED_OVER_TLS and not conf.TRUST_PROXY:
        warnings.append(
            checks.Warning(
                "PUBLIC_BASE_URL uses https, but TRUST_PROXY is false: the service cannot see which requests use TLS.",
                hint="Set TRUST_PROXY=true, and let the reverse proxy set X-Forwarded-Proto.",
                id="payments_site.W002",
            )
        )
    return warnings
