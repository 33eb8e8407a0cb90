"""Search terms, by which staff find payments. A term is one of:

- a word of the description, of a metadata value or of the name in the details, after the sign `:`
- an amount with two decimal places, after `=`
- the last four digits of a card, after `#`

Case and Unicode's normal forms do not matter: both databases fold texts in the same way, PostgreSQL by a function that
the migration creates. Its own `lower` depends on the locale of the database.

A word that ends with `*` stands for all words that begin with it.

PostgreSQL has the GIN index `payment_search` of a text search vector. Its entries begin with the organization and the
mode, such as `1001live:84820`, for the reason that `terms` gives. SQLite calls a function of this module for each
payment of the list, which takes about 3 µs: SQLite is for small databases.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression
from django.db.models.sql.compiler import SQLCompiler

from payments.listing.terms import TermCondition, truncated_sql
from payments.models.expressions import Sql, quoted

WORD, AMOUNT, CARD = ":", "=", "#"
CARD_DIGITS = 4  # the last ones
BEGINNING = "*"  # the end of a word that stands for all words with this beginning

# The members of the details with a name. The first one counts.
NAMES = ("cardHolder", "consumerName")

# The characters that separate words: those of ASCII without letters and digits, and frequent ones of other scripts.
# Both PostgreSQL's and Python's regular expressions understand these ranges. The backslash is missing.
SEPARATORS = (
    r"\u0001-/:-@\[\]-`{-\u00bf\u00d7\u00f7\u2000-\u206f\u20a0-\u20cf"
    r"\u3000-\u3003\u3008-\u3020\u30fb\ufe30-\ufe4f\ufeff\uff01-\uff0f\uff1a-\uff20"
)
# Folding turns an accent that stands alone into a space with a combining mark.
MARKS = r"[\u0300-\u036f]*"
BETWEEN_WORDS = rf"(?:[\\{SEPARATORS}]{MARKS})+"

# The same in the text of JSON, where a backslash begins each escaped character.
BETWEEN_JSON_WORDS = rf'(?:(?:\\(?:["\\/bfnrt]|u[0-9a-f]{{4}})|[{SEPARATORS}]){MARKS})+'

FUNCTION = "payments_has_terms"  # of SQLite
FOLD = "payments_folded"  # of PostgreSQL: it does the same as `folded`


def split_words(text: str) -> list[str]:
    return [word for word in re.split(BETWEEN_WORDS, text) if word]


def folded(text: str) -> str:
    """Return a text without differences of case and of Unicode's normal forms. In Turkish, an i may have no dot."""
    if text.isascii():
        return text.lower()
    return re.sub("i\u0307+", "i", unicodedata.normalize("NFKD", text).casefold().replace("\u0131", "i"))


def search_terms_sql(**columns: str) -> str:
    """Return PostgreSQL's SQL for all search terms of a payment: the expression of the index.

    `columns` has the SQL of each of `HasSearchTerms.columns`.

    It costs 9 µs for a payment. A split with `translate`, or PostgreSQL's parser of words, takes several times as long.
    """
    prefix = f"{columns['organization_id']}::text || {columns['mode']}"
    values = f"jsonb_path_query_array({columns['metadata']}::jsonb, '$.*')::text"
    backslash = quoted("\\")
    details = f"{columns['details']}::json"  # to read a member of `jsonb` takes longer
    name = f"coalesce({', '.join(f'{details} ->> {quoted(name)}' for name in NAMES)}, '')"
    text = f"{values} || replace({columns['description']} || ' ' || {name}, {backslash}, ' ')"
    words = f"btrim(regexp_replace({FOLD}({text}), {quoted(BETWEEN_JSON_WORDS)}, ' ', 'g'))"
    card = f"right(replace({details} ->> 'cardNumber', ' ', ''), 4)"
    joined = (
        f"{prefix} || '{WORD}' || replace({words}, ' ', ' ' || {prefix} || '{WORD}')"
        f" || ' ' || {prefix} || '{AMOUNT}' || {columns['amount']}::text"
        f" || coalesce(' ' || {prefix} || '{CARD}' || {card}, '')"
    )
    terms = truncated_sql(f"string_to_array({joined}, ' ')")
    return f"array_to_tsvector({terms})"


class HasSearchTerms(TermCondition):
    """A condition: a payment has one term of each group. A group is a text of terms, separated by spaces.

    The planner of PostgreSQL does not see the terms, for the reason that `expressions.Opaque` gives.

    `uses_index`: PostgreSQL finds the payments in the index. Otherwise it reads the terms of each payment, which is
    faster if most payments match.
    """

    columns = ("organization_id", "mode", "description", "metadata", "amount", "details")

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
        terms = search_terms_sql(**dict(zip(self.columns, columns, strict=True)))
        prefix = f"{organization_id}::text || {mode}"
        conditions = [f"{terms} @@ (SELECT {wanted_sql(prefix, group)})" for group in groups]
        if self.uses_index:
            # PostgreSQL expects a condition with unknown terms to be true for 0.5 % of all payments, and would read the
            # list. If the conditions stand twice, it expects hardly any results, and uses the index of terms alone.
            return " AND ".join(conditions * 2), ()
        # The terms of a payment are computed once, not once for each group.
        have_terms = " AND ".join(f"terms @@ (SELECT {wanted_sql(prefix, group)})" for group in groups)
        return f"(SELECT {have_terms} FROM (SELECT {terms} AS terms OFFSET 0) AS of_payment)", ()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_context: Any) -> Sql:
        (_, _, description, metadata, amount, details), _, _, groups = self.parts(compiler)
        arguments = [description, metadata, f"printf('%%.2f', {amount})", details, *groups]
        return f"{FUNCTION}({', '.join(arguments)})", ()


def wanted_sql(prefix: str, group: str) -> str:
    """Return PostgreSQL's SQL for the text search query of a group: `'1001live:84820' | '1001live:8482':*`."""
    text = rf"translate({FOLD}({group}), E'\'\\', '')"  # a word has none of these signs, which would end the lexeme
    terms = truncated_sql(f"string_to_array({prefix} || replace({text}, ' ', ' ' || {prefix}), ' ')")
    return rf"replace(E'\'' || array_to_string({terms}, E'\' | \'') || E'\'', E'*\'', E'\':*')::tsquery"


def add_function(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Define the function that `HasSearchTerms` calls on SQLite: a receiver of Django's signal `connection_created`."""
    if connection.vendor == "sqlite":
        connection.connection.create_function(FUNCTION, -1, has_terms, deterministic=True)


# Numbers stay as they are written.
exact = partial(json.loads, parse_int=str, parse_float=str)


def json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def has_terms(description: str, metadata: str, amount: str, details: str | None, *groups: str) -> bool:
    """Return whether a payment with these values has a term of each group."""
    members = exact(details or "{}")
    name = next((json_text(members[name]) for name in NAMES if members.get(name) is not None), "")
    text = folded(" ".join([description, name, *map(json_text, exact(metadata).values())]))
    terms = {f"{AMOUNT}{amount}"}
    if card_number := members.get("cardNumber"):
        terms.add(f"{CARD}{str(card_number).replace(' ', '')[-CARD_DIGITS:]}")

    def has_term(term: str) -> bool:
        # To split the text takes longest, so a text without the word is not split.
        return term in terms or (term.startswith(WORD) and has_word(text, term[1:]))

    return all(any(map(has_term, folded(group).split(" "))) for group in groups)


def has_word(text: str, word: str) -> bool:
    beginning = word.removesuffix(BEGINNING)
    if beginning not in text:
        return False
    words = split_words(text)
    return any(other.startswith(beginning) for other in words) if word != beginning else word in words
