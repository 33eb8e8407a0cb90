"""The search index of SQLite: a table of its full-text search FTS5 with the search terms of each payment.

The table has no content, only the rows of each term. Its row numbers contain the number of a list (an organization and
mode) and the payment's own row number. So a search reads only the rows of one list. The other lists do not matter.

- New payments are added by `index_new_payments`, many at a time: a trigger for each would take an import twice as long.
- Triggers replace the terms of a payment that changes, also by SQL.
- SQLite numbers rows from 1. Payments are never deleted, so the numbers have no gaps, and neither VACUUM nor a
  migration that copies the table changes them. Triggers also follow a deletion, for example between tests.

A migration that changes the terms, or copies the table `payments_payment`, must drop the index and create it again: a
copy of the table loses the triggers.
"""

from collections.abc import Sequence

from django.db import DEFAULT_DB_ALIAS, connection, connections

from payments.database.quoting import quoted

TABLE = "payments_payment"
INDEX = "payments_search"
LISTS = "payments_searchlist"

# The bits of a row number of the index that are the payment's row number. The others are the number of the list.
ROW_BITS = 40
ROW_MASK = (1 << ROW_BITS) - 1

# How many payments are added with one statement, which sorts them.
PART_ROWS = 50_000

# A share of the payments. If an import has written more, it merges the parts of the index: with many parts, the lookup
# of a payment takes up to ten times as long. The merge takes 0.5 µs for each payment of the table.
MERGED_SHARE = 0.1

# Characters for private use begin the tokens of amounts and cards.
AMOUNT_SIGN, CARD_SIGN = "char(57344)", "char(57345)"


# The characters of `search_terms.SEPARATORS`.
SEPARATOR_RANGES = (
    *((0x01, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0xBF), (0xD7, 0xD7), (0xF7, 0xF7)),
    *((0x2000, 0x206F), (0x20A0, 0x20CF), (0x3000, 0x3003), (0x3008, 0x3020), (0x30FB, 0x30FB)),
    *((0xFE30, 0xFE4F), (0xFEFF, 0xFEFF), (0xFF01, 0xFF0F), (0xFF1A, 0xFF20)),
)
SEPARATORS = "".join(chr(number) for first, last in SEPARATOR_RANGES for number in range(first, last + 1))

TOKENIZER = " ".join(
    (
        "unicode61 remove_diacritics 0",
        "categories 'L* M* N* P* S* Z* C*'",  # no other characters separate tokens
        f"separators {quoted(SEPARATORS)}",
    )
)


def encoded_amount(text: str) -> str:
    """Return the SQL for an amount as one token: without a point or a minus sign, which separate words."""
    return f"replace(replace({text}, '.', 'd'), '-', 'n')"


def terms_of(row: str) -> str:
    """Return the SQL for the search terms of a row of payments, as text."""
    members = f"SELECT group_concat(value, ' ') FROM json_each({row}.metadata)"
    values = f"CASE {row}.metadata WHEN '{{}}' THEN '' ELSE ({members}) END"
    number = f"replace(json_extract({row}.details, '$.cardNumber'), ' ', '')"
    card = f"CASE WHEN {row}.details IS NULL THEN '' ELSE coalesce({CARD_SIGN} || substr({number}, -4), '') END"
    amount = encoded_amount(f"printf('%.2f', {row}.amount)")
    return f"{row}.description || ' ' || {values} || ' ' || {AMOUNT_SIGN} || {amount} || ' ' || {card}"


def index_row(row: str) -> str:
    """Return the SQL for the row number in the index."""
    number = f"SELECT number FROM {LISTS} WHERE (organization_id, mode) = ({row}.organization_id, {row}.mode)"
    return f"(({number}) << {ROW_BITS} | {row}.rowid)"


def trigger(name: str, event: str, *statements: str) -> str:
    return f"CREATE TRIGGER {INDEX}_{name} {event} BEGIN {'; '.join(statements)}; END"


REMOVE = f"INSERT INTO {INDEX} ({INDEX}, rowid, terms) VALUES ('delete', {index_row('old')}, {terms_of('old')})"
ADD = f"INSERT INTO {INDEX} (rowid, terms) VALUES ({index_row('new')}, {terms_of('new')})"
# Not with OR IGNORE: in a trigger, the statement that fires it decides how conflicts are handled.
ADD_LIST = (
    f"INSERT INTO {LISTS} (organization_id, mode) SELECT new.organization_id, new.mode "
    f"WHERE NOT EXISTS (SELECT 1 FROM {LISTS} WHERE (organization_id, mode) = (new.organization_id, new.mode))"
)

SEARCHED_COLUMNS = ("organization_id", "mode", "description", "metadata", "amount", "details")
HAS_CHANGED = " OR ".join(f"new.{column} IS NOT old.{column}" for column in SEARCHED_COLUMNS)
IS_INDEXED = f"old.rowid <= (SELECT max(last_row) FROM {LISTS})"

CREATE_INDEX = (
    f"CREATE VIRTUAL TABLE {INDEX} "
    f"USING fts5 (terms, content='', detail=none, columnsize=0, tokenize={quoted(TOKENIZER)})"
)
CREATE_LISTS = (
    f"CREATE TABLE {LISTS} (number integer PRIMARY KEY, organization_id bigint NOT NULL, mode varchar(4) NOT NULL, "
    "last_row bigint NOT NULL DEFAULT 0, UNIQUE (organization_id, mode))"
)


LAST_ROW = f"SELECT coalesce(max(rowid), 0) FROM {TABLE}"
CREATE = (
    CREATE_INDEX,
    CREATE_LISTS,
    trigger(
        "update",
        f"AFTER UPDATE OF {', '.join(SEARCHED_COLUMNS)} ON {TABLE} WHEN ({HAS_CHANGED}) AND {IS_INDEXED}",
        *(ADD_LIST, REMOVE, ADD),
    ),
    trigger(
        "delete",
        f"AFTER DELETE ON {TABLE} WHEN {IS_INDEXED}",
        *(REMOVE, f"UPDATE {LISTS} SET last_row = min(last_row, ({LAST_ROW}))"),
    ),
)

# Both add the rows after the first parameter, up to the second.
ADD_LISTS_OF_ROWS = (
    f"INSERT OR IGNORE INTO {LISTS} (organization_id, mode) "
    f"SELECT DISTINCT organization_id, mode FROM {TABLE} WHERE rowid > %s AND rowid <= %s"
)
ADD_ROWS = (
    f"INSERT INTO {INDEX} (rowid, terms) "
    f"SELECT {index_row('payment')} AS number, {terms_of('payment').replace('%', '%%')} "
    f"FROM {TABLE} AS payment WHERE payment.rowid > %s AND payment.rowid <= %s ORDER BY number"
)


def index_new_payments(using: str = DEFAULT_DB_ALIAS, *, part_rows: int = PART_ROWS) -> None:
    """Add the payments that the index does not contain yet. On other databases than SQLite, do nothing.

    Cost: one query, and two statements for each `part_rows` new payments.
    """
    if connections[using].vendor != "sqlite":
        return
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT (SELECT coalesce(max(last_row), 0) FROM {LISTS}), ({LAST_ROW})")
        indexed, last_row = cursor.fetchone()
        for before in range(indexed, last_row, part_rows):
            rows = [before, min(before + part_rows, last_row)]
            cursor.execute(ADD_LISTS_OF_ROWS, rows)
            cursor.execute(ADD_ROWS, rows)
        if indexed < last_row:
            cursor.execute(f"UPDATE {LISTS} SET last_row = %s", [last_row])


def merge_parts(*, written: int) -> None:
    """Merge the parts of the index, unless an import has written few payments. `written` is their number.

    On other databases than SQLite, do nothing.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT coalesce(max(last_row), 0) FROM {LISTS}")
        if written > MERGED_SHARE * cursor.fetchone()[0]:
            cursor.execute(f"INSERT INTO {INDEX} ({INDEX}) VALUES ('optimize')")


def first_row_sql(organization_id: str, mode: str) -> str:
    """Return the SQL for the row number before the first one of a list; null if the list has no payments."""
    return f"(SELECT number << {ROW_BITS} FROM {LISTS} WHERE (organization_id, mode) = ({organization_id}, {mode}))"


def match_sql(groups: Sequence[str]) -> str:
    """Return the SQL for a query of FTS5 for all groups of terms, as `search_terms.HasSearchTerms` has them."""
    tokens = (
        f"replace(replace(replace({encoded_amount(group)}, ':', ''), '=', {AMOUNT_SIGN}), '#', {CARD_SIGN})"
        for group in groups
    )
    return " || ' AND ' || ".join(f"""'("' || replace({group}, ' ', '" OR "') || '")'""" for group in tokens)


def condition_sql(row: str, organization_id: str, mode: str, groups: Sequence[str], *, uses_index: bool) -> str:
    """Return the SQL of a condition on a payment with this row number.

    `uses_index`: the search reads all its results first. Otherwise it looks up each payment.
    """
    first = first_row_sql(organization_id, mode)
    results = f"FROM {INDEX} WHERE {INDEX} MATCH {match_sql(groups)} AND"
    if uses_index:
        return f"{row} IN (SELECT rowid & {ROW_MASK} {results} rowid > {first} AND rowid <= {first} + {ROW_MASK})"
    return f"EXISTS (SELECT 1 {results} rowid = {first} + {row})"
