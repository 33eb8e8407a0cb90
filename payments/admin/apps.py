"""Django's admin on a site of our own."""

from django.contrib.admin.apps import AdminConfig


class PaymentsAdminConfig(AdminConfig):
    """Uses our site, and registers our pages there."""

    default_site = "payments.admin.site.Site"

    def ready(self) -> None:
        super().ready()
        # Not imported by the package itself: its module `site` must be importable before there is a site.
        from payments.admin import keys, organizations, payments  # noqa: F401, PLC0415
