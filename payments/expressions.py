"""What conditions are made of, beside what Django has: each in a way that the database has an index for."""

import sys
from collections.abc import Collection
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Expression, F, Func, Value
from django.db.models.sql.compiler import SQLCompiler

from payments.fields import DocumentField


class Repeated(Func):
    """The condition that an index has: SQLite takes the index only where it reads that, to the letter.

    PostgreSQL infers it, and would reckon with it twice.
    """

    template = "%(expressions)s"
    output_field = BooleanField()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> tuple[str, tuple[()]]:
        return "TRUE", ()


class Literal(Expression):
    """A text that is written into the SQL, for whoever plans a statement to see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[()]]:
        quoted = self.text.replace("'", "''").replace("%", "%%")
        return f"'{quoted}'", ()


class Beginning(Func):
    """The first characters of a text, compared byte by byte, whatever the database's language."""

    LENGTH = 64
    output_field = models.TextField()
    arity = 1

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template=f'left(%(expressions)s, {self.LENGTH}) COLLATE "C"', **context
        )

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template=f"substr(%(expressions)s, 1, {self.LENGTH})", **context)


def after_all_that_begin_with(text: Any) -> Expression:
    """Return what comes behind every text that begins with `text`: it goes on with the last of all characters."""
    begun = text if isinstance(text, Expression) else Value(text)
    last = Literal(chr(sys.maxunicode))
    return Func(begun, last, template="(%(expressions)s)", arg_joiner=" || ", output_field=models.TextField())


class Words(Func):
    """Texts as one array; PostgreSQL's own."""

    template = "ARRAY[%(expressions)s]::text[]"


class HasWord(Func):
    """Whether one of these words stands in a column of words.

    It asks no more than the column itself is asked beside it, but of an index of all words at once: small, and quick
    where a word is rare. SQLite has none of the kind.
    """

    template = "%(expressions)s"
    arg_joiner = " && "
    output_field = BooleanField()

    def __init__(self, words: Collection[Any]) -> None:
        asked = [word if isinstance(word, Expression) else Value(word) for word in words]
        super().__init__(Words(*map(F, WORD_COLUMNS)), Words(*asked))

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> tuple[str, tuple[()]]:
        return "TRUE", ()


WORD_COLUMNS = ("method", "sequence_type", "amount_currency")


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
