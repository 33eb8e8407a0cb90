"""The Django application `payments`."""

from typing import Any

from django.apps import AppConfig, apps
from django.core.management.base import CommandError
from django.db.backends.signals import connection_created
from django.db.models.signals import pre_migrate


class PaymentsConfig(AppConfig):
    """The configuration of the application."""

    name = "payments"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        pre_migrate.connect(refuse_obsolete, sender=self)
        from payments import checks  # noqa: F401, PLC0415  registers the checks
        from payments.listing import search_terms  # noqa: PLC0415

        connection_created.connect(search_terms.add_function)

        if apps.is_installed("django.contrib.admin"):
            # They register model admins on the project's admin site. The package `payments.admin` cannot import them:
            # our own admin site is one of its modules, and needs to exist before.
            from payments.admin import imports, keys, organizations  # noqa: F401, PLC0415
            from payments.admin.payments import reads, views  # noqa: F401, PLC0415


def refuse_obsolete(*, using: str, **_: Any) -> None:
    """Stop the command `migrate` if an earlier development version made the database."""
    from payments.database.migration_state import explain_obsolete, read_migration_state  # noqa: PLC0415  needs apps

    if read_migration_state(using).is_obsolete:
        raise CommandError(explain_obsolete(using))
