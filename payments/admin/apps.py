"""The app config that replaces Django's admin site with ours."""

from django.contrib.admin.apps import AdminConfig


class PaymentsAdminConfig(AdminConfig):
    """Uses our admin site and registers our model admins on it."""

    default_site = "payments.admin.site.PaymentsAdminSite"

    def ready(self) -> None:
        super().ready()
        # The package cannot import these: Django imports its module `site` before the site exists.
        from payments.admin import accounts, keys, organizations, payment_reads, payments  # noqa: F401, PLC0415
