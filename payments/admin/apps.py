"""The app config that replaces Django's admin site with ours."""

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.apps import AdminConfig

ALLAUTH = {"account", "socialaccount", "mfa"}


class PaymentsAdminConfig(AdminConfig):
    """Uses our admin site and registers our model admins on it."""

    default_site = "payments.admin.site.PaymentsAdminSite"

    def ready(self) -> None:
        super().ready()
        # The package cannot import these: Django imports its module `site` before the site exists.
        from payments.admin import accounts, keys, organizations, payment_reads, payments  # noqa: F401, PLC0415

        # The pages of django-allauth's models show secrets of users.
        configs = [config for config in apps.get_app_configs() if config.label in ALLAUTH]
        models = [model for config in configs for model in config.get_models() if admin.site.is_registered(model)]
        admin.site.unregister(models)
