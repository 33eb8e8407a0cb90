"""Terms: what PostgreSQL finds payments by in the GIN index `payment_terms`.

A term is a word of a payment, such as `1001live method ideal`, or the start of a metadata pair, such as
`1001live order": "84820`. It begins with the organization and the mode. So payments of different organizations have no
term in common, and neither the index nor the planner's statistics of terms mix them: the time of a page reveals nothing
about other organizations.

A condition on terms is redundant beside the exact condition of a filter: it only lets PostgreSQL use the index. SQLite
has no such index.
"""

from collections.abc import Collection
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Expression, F, Func
from django.db.models.sql.compiler import SQLCompiler

from payments.models.expressions import Literal, Sql

# The columns whose words are terms, by the word's name in the term.
WORD_COLUMNS = {"status": "status", "method": "method", "sequence": "sequence_type", "currency": "amount_currency"}

# If the statistics lack a term, PostgreSQL assumes that it is half as frequent as the rarest term that they contain. So
# a thousandth of the payments, selected by a hash of the ID, has this term.
RARE_TERM = "rare"

# A longer metadata pair is found by its start. GIN refuses terms of more than 2,700 bytes.
CHARACTERS_MAX = 128


# In the text of a jsonb object, this separates members, and stands nowhere else: in a text, each quote follows a
# backslash.
SEPARATOR = '", "'


def filter_prefix_sql(organization_id: str, mode: str) -> str:
    return f"{organization_id}::text || {mode} || ' '"


def word_sql(name: str, word: str) -> str:
    return f"'{name} ' || {word}"


def members_sql(document: str) -> str:
    """Return the SQL for the members of a JSON object of texts, separated by `SEPARATOR`: `order": "84820`."""
    return f"left(right({document}::jsonb::text, -2), -2)"


def split_sql(prefix: str, words: str) -> str:
    """Return the SQL for an array of the words in a text, each with the prefix. `SEPARATOR` separates the words."""
    return f"string_to_array({prefix} || replace({words}, '{SEPARATOR}', '{SEPARATOR}' || {prefix}), '{SEPARATOR}')"


def truncated_sql(terms: str) -> str:
    """Return the SQL for terms of limited length, which PostgreSQL compares byte by byte."""
    return f'({terms})::varchar({CHARACTERS_MAX})[] COLLATE "C"'


def filter_terms_sql(payment_id: str, organization_id: str, mode: str, metadata: str, *words: str) -> str:
    """Return the SQL for all terms of a payment: the expression of the index."""
    parts = [*(word_sql(name, word) for name, word in zip(WORD_COLUMNS, words, strict=True)), members_sql(metadata)]
    joined = f" || '{SEPARATOR}' || ".join(parts)
    rare = f"CASE WHEN mod(hashtext({payment_id}), 1000) = 0 THEN ARRAY['{RARE_TERM}'] END"
    return truncated_sql(f"{split_sql(filter_prefix_sql(organization_id, mode), joined)} || {rare}")


class TermCondition(Func):
    """A condition on the terms of a payment. `access` and `values` are constants or placeholders."""

    output_field = BooleanField()
    columns = ("id", "organization_id", "mode", "metadata", *WORD_COLUMNS.values())
    operator: str

    def __init__(self, organization_id: int | Expression, mode: str | Expression, *values: str | Expression) -> None:
        super().__init__(*map(F, self.columns), *map(visible, (organization_id, mode, *values)))

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Sql:
        return "TRUE", ()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Sql:
        columns, organization_id, mode, values = self.parts(compiler)
        wanted = truncated_sql(self.wanted_sql(filter_prefix_sql(organization_id, mode), values))
        return f"({filter_terms_sql(*columns)}) {self.operator} ({wanted})", ()

    def parts(self, compiler: SQLCompiler) -> tuple[list[str], str, str, list[str]]:
        """Return the SQL of the columns, of the organization, of the mode, and of the values."""
        sql = [compiler.compile(expression)[0] for expression in self.get_source_expressions()]
        columns, (organization_id, mode, *values) = sql[: len(self.columns)], sql[len(self.columns) :]
        return columns, organization_id, mode, values

    def wanted_sql(self, prefix: str, values: list[str]) -> str:
        raise NotImplementedError


def visible(value: int | str | Expression) -> Expression:
    """Return a value that the planner sees."""
    return value if isinstance(value, Expression) else Literal(str(value))


class HasAnyWord(TermCondition):
    """True for payments with one of the words under this name of `WORD_COLUMNS`."""

    operator = "&&"

    def __init__(
        self, organization_id: int | Expression, mode: str | Expression, name: str, words: Collection[str | Expression]
    ) -> None:
        super().__init__(organization_id, mode, *words)
        self.name = name

    def wanted_sql(self, prefix: str, values: list[str]) -> str:
        return f"ARRAY[{', '.join(f'{prefix} || {word_sql(self.name, word)}' for word in values)}]"


class HasAllPairs(TermCondition):
    """True for payments with the terms of all pairs of a JSON object of texts."""

    operator = "@>"

    def wanted_sql(self, prefix: str, values: list[str]) -> str:
        [document] = values
        return split_sql(prefix, members_sql(document))
