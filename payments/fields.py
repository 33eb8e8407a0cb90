"""Model fields that keep a value exactly: ids byte by byte, times to the millisecond, documents as their own text.

And what a condition on them is made of, beside what Django has.
"""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression
from django.db.models.sql.compiler import SQLCompiler


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


@DocumentField.register_lookup
class HoldsTexts(models.Lookup):
    """Whether an object has all members of another one, given as JSON, whose values are texts: `metadata__holds=`."""

    lookup_name = "holds"

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        held, held_parameters = self.process_lhs(compiler, connection)
        asked, asked_parameters = self.process_rhs(compiler, connection)
        return f"({held})::jsonb @> ({asked})::jsonb", [*held_parameters, *asked_parameters]

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        held, held_parameters = self.process_lhs(compiler, connection)
        asked, asked_parameters = self.process_rhs(compiler, connection)
        is_held = f"SELECT 1 FROM json_each({held}) AS held WHERE held.key = asked.key AND held.value = asked.value"
        missing = f"SELECT 1 FROM json_each({asked}) AS asked WHERE NOT EXISTS ({is_held})"
        return f"NOT EXISTS ({missing})", [*asked_parameters, *held_parameters]


class Literal(Expression):
    """A text that is known when the statement is declared: a planner that sees it finds the index that is for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[()]]:
        quoted = self.text.replace("'", "''").replace("%", "%%")
        return f"'{quoted}'", ()
