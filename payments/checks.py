"""System checks: what the application needs of the project."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, connections, router

VENDORS = {"postgresql", "sqlite"}


@checks.register(checks.Tags.compatibility)
def project_uses_time_zones(**_options: Any) -> list[checks.CheckMessage]:
    if settings.USE_TZ:
        return []
    return [checks.Error("USE_TZ is False, but times of payments are in UTC.", hint="Set USE_TZ.", id="payments.E001")]


@checks.register(checks.Tags.compatibility)
def database_is_supported(**_options: Any) -> list[checks.CheckMessage]:
    """Refuse other databases: constraints, indexes and statements are written for these two."""
    from payments.models import Payment  # noqa: PLC0415  needs the applications

    alias = router.db_for_write(Payment)
    if alias != DEFAULT_DB_ALIAS:
        text, hint = f"The router sends payments to the database {alias}.", "Leave the application in `default`."
    elif connections[alias].vendor not in VENDORS:
        text, hint = "The database is neither PostgreSQL nor SQLite.", "Use one of these as `default`."
    else:
        return []
    return [checks.Error(text, hint=hint, id="payments.E002")]


@checks.register(checks.Tags.compatibility)
def driver_is_psycopg_3(**_options: Any) -> list[checks.CheckMessage]:
    if not any(settings["ENGINE"].endswith("postgresql") for settings in connections.settings.values()):
        return []
    from django.db.backends.postgresql.psycopg_any import is_psycopg3  # noqa: PLC0415  needs a driver

    if is_psycopg3:
        return []
    return [checks.Error("Django uses psycopg2.", hint="Uninstall psycopg2, install psycopg 3.", id="payments.E003")]
