"""The app config that replaces Django's admin site with ours, which also has pages for users and sign-in."""

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.apps import AdminConfig

ALLAUTH = {"account", "socialaccount", "mfa"}


class PaymentsAdminConfig(AdminConfig):
    """Uses our admin site, and registers its pages for users and groups."""

    default_site = "payments.admin.site.PaymentsAdminSite"

    def ready(self) -> None:
        super().ready()
        from payments.admin import accounts  # noqa: F401, PLC0415  registers them

        # The pages of django-allauth's models show secrets of users.
        configs = [config for config in apps.get_app_configs() if config.label in ALLAUTH]
        models = [model for config in configs for model in config.get_models() if admin.site.is_registered(model)]
        admin.site.unregister(models)
