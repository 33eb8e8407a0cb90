"""The site as a Django application: it brings system checks."""

from django.apps import AppConfig


class PaymentsSiteConfig(AppConfig):
    """Registers the site's system checks."""

    name = "payments_site"

    def ready(self) -> None:
        from payments_site import checks  # noqa: F401, PLC0415  registered by being imported
