"""The Django project as an application: it brings system checks."""

from django.apps import AppConfig
from django.conf import settings

from payments.runtime.process import process


class PaymentsSiteConfig(AppConfig):
    """Registers the site's system checks."""

    name = "payments_site"

    def ready(self) -> None:
        from payments_site import checks  # noqa: F401, PLC0415  registered by being imported

        if settings.METRICS:
            from payments.service.telemetry.metrics import MetricsHook  # noqa: PLC0415

            process.hooks.register(MetricsHook())
