"""The Django project as an application: it registers system checks and metrics."""

from django.apps import AppConfig


class PaymentsSiteConfig(AppConfig):
    """Registers the project's system checks, and metrics of all its processes."""

    name = "payments_site"

    def ready(self) -> None:
        from payments.service import telemetry  # noqa: PLC0415  needs the settings
        from payments_site import checks  # noqa: F401, PLC0415  registers the checks

        telemetry.register_metrics()
