"""Search terms, by which staff find payments. A term is one of:

- a word of the description or of a metadata value, after the sign `:`
- an amount with two decimal places, after `=`
- the last four digits of a card, after `#`

PostgreSQL has the GIN index `payment_search`. Its entries begin with the organization and the mode,
such as `1001live:84820`, for the reason that `terms` gives. SQLite has a table of its full-text search FTS5
(database/sqlite/search_index.py), in which each organization and mode has a range of row numbers.
"""

import re
from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression
from django.db.models.sql.compiler import SQLCompiler

from payments.database.quoting import quoted
from payments.database.sqlite import search_index
from payments.listing.terms import TermCondition, truncated_sql
from payments.models.expressions import Sql

WORD, AMOUNT, CARD = ":", "=", "#"

# The characters that separate words: those of ASCII without letters and digits, and frequent ones of other scripts.
# Both PostgreSQL's and Python's regular expressions understand these ranges. The backslash is missing.
SEPARATORS = (
    r"\u0001-/:-@\[\]-`{-\u00bf\u00d7\u00f7\u2000-\u206f\u20a0-\u20cf"
    r"\u3000-\u3003\u3008-\u3020\u30fb\ufe30-\ufe4f\ufeff\uff01-\uff0f\uff1a-\uff20"
)
BETWEEN_WORDS = rf"[\\{SEPARATORS}]+"

# The same in the text of JSON, where a backslash begins each escaped character.
BETWEEN_JSON_WORDS = rf'(?:\\(?:["\\/bfnrt]|u[0-9a-f]{{4}})|[{SEPARATORS}])+'


def words(text: str) -> list[str]:
    return [word for word in re.split(BETWEEN_WORDS, text) if word]


def prefix_sql(organization_id: str, mode: str) -> str:
    return f"{organization_id}::text || {mode}"


def terms_sql(**columns: str) -> str:
    """Return PostgreSQL's SQL for all search terms of a payment: the expression of the index.

    `columns` has the SQL of each of `HasSearchTerms.columns`.

    It costs 8 µs for a payment. A split with `translate`, or PostgreSQL's parser of words, takes several times as long.
    """
    prefix = prefix_sql(columns["organization_id"], columns["mode"])
    values = f"jsonb_path_query_array({columns['metadata']}::jsonb, '$.*')::text"
    split_description = f"regexp_replace(lower({columns['description']}), {quoted(BETWEEN_WORDS)}, ' ', 'g')"
    split_values = f"regexp_replace(lower({values}), {quoted(BETWEEN_JSON_WORDS)}, ' ', 'g')"
    words = f"btrim({split_description} || {split_values})"
    card = f"right(replace({columns['details']}::jsonb ->> 'cardNumber', ' ', ''), 4)"
    joined = (
        f"{prefix} || '{WORD}' || replace({words}, ' ', ' ' || {prefix} || '{WORD}')"
        f" || ' ' || {prefix} || '{AMOUNT}' || {columns['amount']}::text"
        f" || coalesce(' ' || {prefix} || '{CARD}' || {card}, '')"
    )
    return truncated_sql(f"string_to_array({joined}, ' ')")


class HasSearchTerms(TermCondition):
    """A condition: a payment has one term of each group. A group is a text of terms, separated by spaces.

    The planner of PostgreSQL does not see the terms, for the reason that `expressions.Opaque` gives.

    `uses_index`: the database finds the payments in the index. Otherwise it reads the terms of each payment, which is
    faster if most payments match.
    """

    columns = search_index.SEARCHED_COLUMNS

    def __init__(
        self,
        organization_id: int | Expression,
        mode: str | Expression,
        groups: Sequence[str | Expression],
        *,
        uses_index: bool,
    ) -> None:
        super().__init__(organization_id, mode, *groups)
        self.uses_index = uses_index

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Sql:
        columns, organization_id, mode, groups = self.parts(compiler)
        terms = terms_sql(**dict(zip(self.columns, columns, strict=True)))
        prefix = prefix_sql(organization_id, mode)
        conditions = [f"({terms}) && (SELECT {wanted_sql(prefix, group)})" for group in groups]
        if self.uses_index:
            # PostgreSQL expects a condition with unknown terms to be true for 0.5 % of all payments, and would read the
            # list. If the conditions stand twice, it expects hardly any results, and uses the index of terms alone.
            return " AND ".join(conditions * 2), ()
        # The terms of a payment are computed once, not once for each group.
        have_terms = " AND ".join(f"terms && (SELECT {wanted_sql(prefix, group)})" for group in groups)
        return f"(SELECT {have_terms} FROM (SELECT {terms} AS terms OFFSET 0) AS of_payment)", ()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Sql:
        columns, organization_id, mode, groups = self.parts(compiler)
        row = f"{columns[0].rpartition('.')[0]}.rowid"
        return search_index.condition_sql(row, organization_id, mode, groups, uses_index=self.uses_index), ()


def wanted_sql(prefix: str, group: str) -> str:
    """Return PostgreSQL's SQL for the array of the terms of a group."""
    return truncated_sql(f"string_to_array({prefix} || replace(lower({group}), ' ', ' ' || {prefix}), ' ')")
