"""SQL expressions that Django lacks: values as text, and conditions that match an index."""

import sys
from collections.abc import Collection
from typing import Any, TypeAlias

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Expression, F, Func, TextField, Value
from django.db.models.sql.compiler import SQLCompiler

from payments.fields import DocumentField

# SQL and its parameters.
Sql: TypeAlias = tuple[str, tuple[str | int, ...]]


class DecimalText(Func):
    """An amount with two decimal places, or null."""

    arity = 1
    output_field = TextField()
    template = "%(expressions)s::text"

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Sql:
        """Keep a null: `printf` would return 0.00 for it."""
        template = "CASE WHEN %(expressions)s IS NOT NULL THEN printf('%%%%.2f', %(expressions)s) END"
        return self.as_sql(compiler, connection, template=template, **context)


class SecondsText(Func):
    """A time as seconds since 1970, or null."""

    arity = 1
    output_field = TextField()
    template = "date_part('epoch', %(expressions)s)::text"

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Sql:
        return self.as_sql(compiler, connection, template="strftime('%%%%s', %(expressions)s)", **context)


class TimeText(Func):
    """A time in UTC with three fractional digits, or null."""

    arity = 1
    output_field = TextField()
    template = "to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS')"

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Sql:
        template = "strftime('%%%%Y-%%%%m-%%%%dT%%%%H:%%%%M:%%%%f', %(expressions)s)"
        return self.as_sql(compiler, connection, template=template, **context)


class IndexPredicate(Func):
    """The predicate of a partial index, repeated in a query.

    SQLite uses the index only if the query contains its predicate literally. PostgreSQL infers the predicate; repeated,
    it would count twice in the estimate of rows.
    """

    template = "%(expressions)s"
    output_field = BooleanField()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Sql:
        return "TRUE", ()


class Literal(Expression):
    """A text written into the SQL, so that the planner sees it."""

    output_field = TextField()

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Sql:
        quoted = self.text.replace("'", "''").replace("%", "%%")
        return f"'{quoted}'", ()


class Prefix(Func):
    """The first 64 characters of a text, compared byte by byte in every locale."""

    LENGTH = 64
    output_field = models.TextField()
    arity = 1

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Sql:
        return self.as_sql(
            compiler, connection, template=f'left(%(expressions)s, {self.LENGTH}) COLLATE "C"', **context
        )

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Sql:
        return self.as_sql(compiler, connection, template=f"substr(%(expressions)s, 1, {self.LENGTH})", **context)


def prefix_upper_bound(prefix: str | Expression) -> Expression:
    """Return a text that sorts after every text with this prefix: the prefix and the last Unicode character."""
    start = prefix if isinstance(prefix, Expression) else Value(prefix)
    last = Literal(chr(sys.maxunicode))
    return Func(start, last, template="(%(expressions)s)", arg_joiner=" || ", output_field=models.TextField())


class TextArray(Func):
    """An array of texts (PostgreSQL)."""

    template = "ARRAY[%(expressions)s]::text[]"


# The columns whose values the GIN index has in one array (migration 0003).
INDEXED_WORDS = ("method", "sequence_type", "amount_currency")


class HasIndexedWord(Func):
    """True if one of the words is a value of a column in `INDEXED_WORDS`.

    A redundant condition beside that of the column itself: it lets PostgreSQL use one small GIN index for all these
    columns, which is fast if the word is rare. SQLite has no such index.
    """

    template = "%(expressions)s"
    arg_joiner = " && "
    output_field = BooleanField()

    def __init__(self, words: Collection[str | Expression]) -> None:
        values = [word if isinstance(word, Expression) else Value(word) for word in words]
        super().__init__(TextArray(*map(F, INDEXED_WORDS)), TextArray(*values))

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Sql:
        return "TRUE", ()


@DocumentField.register_lookup
class ContainsMembers(models.Lookup):
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
