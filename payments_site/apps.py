"""The site as a Django application: it brings system checks, and the admin's own site."""

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import AdminConfig

from payments.observing import observers


class PaymentsSiteConfig(AppConfig):
    """Registers the site's system checks."""

    name = "payments_site"

    def ready(self) -> None:
        from payments_site import checks  # noqa: F401, PLC0415  registered by being imported

        if settings.METRICS:
            from payments_site.telemetry.metrics import MetricsObserver  # noqa: PLC0415

            observers.append(MetricsObserver())


class LimitedAdminConfig(AdminConfig):
    """Django's admin, on a site of our own."""

    default_site = "payments_site.admin.Site"
