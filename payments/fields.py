"""Model fields that keep a value exactly: ids byte by byte, times to the millisecond, documents as their own text."""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class IdentifierField(models.CharField):  # type: ignore[type-arg]
    """Text that the database compares and sorts byte by byte, whatever its language."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        """Spell `varchar` out: under that name Django adds an index for LIKE, which this collation makes useless."""
        if connection.vendor == "postgresql":
            return f"character varying({self.max_length})"
        return super().db_type(connection)

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        collation = {"postgresql": "C", "sqlite": "BINARY"}[connection.vendor]
        return {**super().db_parameters(connection), "collation": collation}


class MillisecondField(models.DateTimeField):  # type: ignore[type-arg]
    """A moment, to the millisecond: what a record shows is what is stored and compared."""

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
    """A JSON object, kept as its own text: binary JSON forgets the order of keys and the form of numbers."""

    def db_check(self, connection: BaseDatabaseWrapper) -> str:
        column = connection.ops.quote_name(str(self.column))
        return {
            "postgresql": f"json_typeof({column}::json) = 'object'",
            "sqlite": f"{column} IS NULL OR (json_valid({column}) AND json_type({column}) = 'object')",
        }[connection.vendor]
