"""Model fields that store values exactly: IDs compared by byte, times in milliseconds, JSON documents as text."""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class IdentifierField(models.CharField):  # type: ignore[type-arg]
    """Text that the database compares and sorts byte by byte in every locale."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        """Return the full name of `varchar`. For the short one Django adds a useless index for LIKE."""
        if connection.vendor == "postgresql":
            return f"character varying({self.max_length})"
        return super().db_type(connection)

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        """Set the collation for each database. `db_collation` takes one name for all, and SQLite has no "C"."""
        collation = {"postgresql": "C", "sqlite": "BINARY"}[connection.vendor]
        return {**super().db_parameters(connection), "collation": collation}


class MillisecondField(models.DateTimeField):  # type: ignore[type-arg]
    """A time in milliseconds, the precision of records: stored and compared values equal those of the record."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        if connection.vendor == "postgresql":
            return "timestamp(3) with time zone"
        return super().db_type(connection)

    def get_prep_value(self, value: Any) -> Any:
        moment = super().get_prep_value(value)
        if isinstance(moment, datetime):
            return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        return moment


class DocumentField(models.TextField):  # type: ignore[type-arg]
    """A JSON object as text.

    `jsonb` loses the order of members and the form of numbers. `json` has no equality, so an import could not detect an
    unchanged row.
    """

    def db_check(self, connection: BaseDatabaseWrapper) -> str:
        column = connection.ops.quote_name(str(self.column))
        return {
            "postgresql": f"json_typeof({column}::json) = 'object'",
            "sqlite": f"{column} IS NULL OR (json_valid({column}) AND json_type({column}) = 'object')",
        }[connection.vendor]
