"""The payments as a Django application."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    """Names the application and registers its OpenAPI extensions."""

    name = "payments"

    def ready(self) -> None:
        from payments import schema  # noqa: F401, PLC0415  registered by being imported
