"""The Django application `payments`."""

from typing import Any

from django.apps import AppConfig
from django.core.management.base import CommandError
from django.db.models.signals import pre_migrate


class PaymentsConfig(AppConfig):
    """The configuration of the application."""

    name = "payments"

    def ready(self) -> None:
        pre_migrate.connect(refuse_obsolete, sender=self)


def refuse_obsolete(*, using: str, **_: Any) -> None:
    """Stop the command `migrate` if an earlier development version made the database.

    :raises CommandError: with the next step
    """
    from payments.database.migration_state import explain_obsolete, read_migration_state  # noqa: PLC0415  needs apps

    if read_migration_state(using).is_obsolete:
        raise CommandError(explain_obsolete(using))
