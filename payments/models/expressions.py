"""SQL expressions that Django lacks: values as text, and conditions that match an index."""

from datetime import timedelta
from typing import Any, TypeAlias

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateField, Expression, Func, IntegerField, Lookup, Q, TextField
from django.db.models.sql.compiler import SQLCompiler

from payments.models.fields import DocumentField

# SQL and its parameters.
Sql: TypeAlias = tuple[str, tuple[str | int, ...]]


class Conversion(Func):
    """A function of one value, with a template for each database."""

    arity = 1
    sqlite_template: str

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Sql:
        return self.as_sql(compiler, connection, template=self.sqlite_template, **context)


class DecimalText(Conversion):
    """An amount with two decimal places, or null, for which `printf` would return 0.00."""

    output_field = TextField()
    template = "%(expressions)s::text"
    sqlite_template = "CASE WHEN %(expressions)s IS NOT NULL THEN printf('%%%%.2f', %(expressions)s) END"


class ByteLength(Conversion):
    """The length of a text in bytes in UTF-8, or null."""

    output_field = IntegerField()
    template = "octet_length(%(expressions)s)"
    sqlite_template = "length(CAST(%(expressions)s AS BLOB))"


class SecondsText(Conversion):
    """A time as seconds since 1970, or null."""

    output_field = TextField()
    template = "date_part('epoch', %(expressions)s)::text"
    sqlite_template = "strftime('%%%%s', %(expressions)s)"


class TimeText(Conversion):
    """A time in UTC with three fractional digits, or null."""

    output_field = TextField()
    template = "to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS')"
    sqlite_template = "strftime('%%%%Y-%%%%m-%%%%dT%%%%H:%%%%M:%%%%f', %(expressions)s)"


class Day(Conversion):
    """The day of a time, in UTC or at an offset from it. Django's function calls Python for each row on SQLite."""

    output_field = DateField()
    template = "((%(expressions)s%(interval)s) AT TIME ZONE 'UTC')::date"
    sqlite_template = "date(%(expressions)s%(modifier)s)"

    def __init__(self, time: str, *, offset: timedelta = timedelta()) -> None:
        seconds = f"'{round(offset.total_seconds())} seconds'"
        interval, modifier = (f" + interval {seconds}", f", {seconds}") if offset else ("", "")
        super().__init__(time, interval=interval, modifier=modifier)


class Condition(Lookup):
    """A condition that SQLite evaluates as it is. Django would write `function = %s`, with the parameter True."""

    def __init__(self, condition: Q | Expression) -> None:
        super().__init__(condition, True)  # noqa: FBT003  the value that Django gives all conditions

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Sql:
        return self.process_lhs(compiler, connection)


class Opaque(Condition):
    """A condition about which the planner of PostgreSQL knows nothing: it expects every second payment to match.

    The planner's statistics cover the payments of all organizations. Without this class, a value that is frequent in
    another organization would change the plan, and so the time, of a page in which it is rare.
    """

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Sql:
        condition, parameters = self.as_sql(compiler, connection)
        return f"CASE WHEN {condition} THEN TRUE ELSE FALSE END", parameters


def hidden(value: Any, sql_type: str = "text") -> Any:
    """Return an expression whose value the planner of PostgreSQL does not see, for the reason that `Opaque` gives.

    It can bound an index. `sql_type` is its type in PostgreSQL. Other values than expressions stay as they are.
    """
    return Hidden(value, sql_type) if isinstance(value, Expression) else value


class Hidden(Func):
    """See `hidden`."""

    template = "%(expressions)s"
    arity = 1

    def __init__(self, value: Expression, sql_type: str = "text") -> None:
        super().__init__(value)
        self.sql_type = sql_type

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Sql:
        return self.as_sql(compiler, connection, template=f"(SELECT %(expressions)s::{self.sql_type})")


def quoted(text: str) -> str:
    """Return a text as a literal of SQL. With a backslash, only PostgreSQL reads it, in sessions with any settings."""
    literal = "'" + text.replace("'", "''") + "'"
    return "E" + literal.replace("\\", "\\\\") if "\\" in text else literal


class Literal(Expression):
    """A text written into the SQL, so that the planner sees it."""

    output_field = TextField()

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Sql:
        return quoted(self.text).replace("%", "%%"), ()


@DocumentField.register_lookup
class ContainsMembers(Lookup):
    """True if a JSON object has all members of another one, whose values are texts: `metadata__contains_members=`."""

    lookup_name = "contains_members"

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Sql:
        document, document_parameters = self.process_lhs(compiler, connection)
        members, members_parameters = self.process_rhs(compiler, connection)
        return f"({document})::jsonb @> ({members})::jsonb", (*document_parameters, *members_parameters)

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Sql:
        document, document_parameters = self.process_lhs(compiler, connection)
        members, members_parameters = self.process_rhs(compiler, connection)
        same = f"SELECT 1 FROM json_each({document}) AS own WHERE own.key = wanted.key AND own.value = wanted.value"
        missing = f"SELECT 1 FROM json_each({members}) AS wanted WHERE NOT EXISTS ({same})"
        return f"NOT EXISTS ({missing})", (*members_parameters, *document_parameters)
