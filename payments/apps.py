"""The payments as a Django application."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    """Names the application."""

    name = "payments"
