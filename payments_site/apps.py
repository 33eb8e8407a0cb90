"""The site as a Django application: it brings system checks, and the admin's own site."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class PaymentsSiteConfig(AppConfig):
    """Registers the site's system checks."""

    name = "payments_site"

    def ready(self) -> None:
        from payments_site import checks  # noqa: F401, PLC0415  registered by being imported


class LimitedAdminConfig(AdminConfig):
    """Django's admin, on a site of our own."""

    default_site = "payments_site.admin.Site"
