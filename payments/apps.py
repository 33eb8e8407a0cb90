"""The Django application `payments`."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    """The configuration of the application."""

    name = "payments"
