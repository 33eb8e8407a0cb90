"""What a response contains: payments, and their state in the same snapshot, both read by one statement.

On PostgreSQL, the statement can read the API key too. The payments are those of the key's organization and mode, so a
key that has just been revoked or moved shows nothing that it does not give access to.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import OperationalError
from django.db.models import QuerySet, TextField, Value
from django.db.models.functions import Cast
from xxhash import xxh3_64_hexdigest

from payments.database.statements import Placeholder, Rows, Statement, compile_queryset, union_all
from payments.expressions import Literal
from payments.models import Access, AccessState, current_epoch
from payments.rows import COLUMNS, Row, make_row
from payments.runtime.servers import PRIMARY

NO_VALUE: Any = Value(None, output_field=TextField())

ROW_COLUMNS = len(Row._fields)

# The IDs of the rows that are no payments. The last two also contain a digest of the statement.
PROOF, STATE, KEY = "proof", "state", "key"
PAYMENT = "pt_"

# Cached statements that also read the key: the list's without filters, and the feed's.
KEY_STATEMENTS_MAX = 1000


class State(NamedTuple):
    """The revision of the payments of an organization and mode, the epoch, and the newest change."""

    revision: int
    epoch: int
    change_number: int
    change_id: int


class KeyRow(NamedTuple):
    """An API key, as a statement returns it: the time of its last use is in seconds since 1970."""

    id: str
    organization_id: str
    mode: str
    last_used_at: str | None


class Content(NamedTuple):
    """Payments, and their state in the same snapshot. Without a state, the payments have never changed.

    `proof` is the row which proves that the database knows the start of the page, if the statement has such a row.
    `revision` identifies the state; None if it is unknown.
    """

    rows: list[Row]
    state: State | None = None
    proof: Row | None = None
    key: KeyRow | None = None
    revision: int | None = None


class WrongStatement(OperationalError):
    """The database has run another statement. A pooler that does not track prepared statements mixes them up."""

    def __init__(self) -> None:
        super().__init__(
            "The pooler does not track prepared statements. Add prepare_threshold=off to DATABASE_URL, or use a pooler "
            "that tracks them."
        )


class ContentStatement:
    """A statement for the content of a response; `payments` and `proof` are SQL for rows of `Row`'s columns.

    It has placeholders for the access (`organization_id` and `mode`) and those of its parts. `has_filters`: their
    values decide which index is best.
    """

    def __init__(self, payments: str | None = None, *, proof: str | None = None, has_filters: bool = False) -> None:
        parts = [part for part in (proof, payments) if part is not None]
        self.has_proof = proof is not None
        self.digest = xxh3_64_hexdigest("".join(parts).encode())
        sql = union_all(*parts, state_row(f"{STATE} {self.digest}"))
        self.statement = Statement(sql, is_planned_each_time=has_filters)

    @property
    def has_filters(self) -> bool:
        return self.statement.is_planned_each_time

    def content(self, rows: Rows) -> Content:
        """Return the content that the statement's rows contain.

        :raises WrongStatement: they are the rows of another statement
        """
        named = list(map(make_row, rows))
        key = state = proof = None
        if named and named[-1].id == f"{KEY} {self.digest}":
            key = KeyRow._make(named.pop()[1 : 1 + len(KeyRow._fields)])
        if named and named[-1].id == f"{STATE} {self.digest}":
            state = State._make(int(value or 0) for value in named.pop()[1 : 1 + len(State._fields)])
        if named and named[0].id == PROOF:
            proof = named.pop(0)
        if named and not named[-1].id.startswith(PAYMENT):
            raise WrongStatement
        return Content(named, state, proof, key, None if state is None else state.revision)


class Query(NamedTuple):
    """A statement for the content of a response, and the values of its placeholders except for the access.

    `has_start`: the page starts at a payment or a change, which the database must know.
    """

    statement: ContentStatement
    values: Mapping[str, Any]
    has_start: bool = False

    @property
    def has_filters(self) -> bool:
        return self.statement.has_filters

    def lacks_start(self, content: Content) -> bool:
        """Return whether the database did not know the start of the page when it read this content."""
        return self.has_start and not (content.proof if self.statement.has_proof else content.rows)

    def read(self, access: Access, using: str = PRIMARY) -> Content:
        """Return the content for an access from the database with this alias."""
        statement = self.statement.statement
        return self.statement.content(statement.rows({**self.values, **access_values(access)}, using))

    def read_with_key(self, key_sql: str, key_values: Mapping[str, str]) -> Content:
        """Return the content for the access of a key, and the key. Without a key, there is no content.

        `key_sql` selects the columns of `KeyRow`. Only on PostgreSQL.
        """
        rows = statement_with_key(self.statement, key_sql).rows({**self.values, **key_values})
        return self.statement.content(rows)


@lru_cache(KEY_STATEMENTS_MAX)
def statement_with_key(content: ContentStatement, key_sql: str) -> Statement:
    """Return a statement for the content and its key.

    The key is a materialized subquery, so PostgreSQL reads the key first, and uses its organization and mode to find
    the payments in the same indexes. psycopg caches the parsed form of statements of at most 4,096 characters.
    """
    sql = content.statement.sql
    for placeholder, column in (("organization_id", "o"), ("mode", "m")):
        sql = sql.replace(f"%({placeholder})s", f"(SELECT {column} FROM k)")
    key = padded(f"SELECT '{KEY} {content.digest}', i::text, o::text, m, l FROM k", columns=1 + len(KeyRow._fields))
    return Statement(f"WITH k(i, o, m, l) AS MATERIALIZED ({key_sql}) {sql} UNION ALL {key}")


def content_columns(
    payments: QuerySet[Any, Any], *, previous_from: Any = NO_VALUE, change_number: Any = NO_VALUE
) -> QuerySet[Any, Row]:
    """Select the columns of `Row`."""
    return payments.values_list(*COLUMNS.values(), previous_from, change_number)


def proof_columns(proof: QuerySet[Any, Any], *, previous_from: Any = NO_VALUE) -> QuerySet[Any, Row]:
    """Select the columns of a row which proves that the database knows the start of a page."""
    missing = [NO_VALUE] * (len(COLUMNS) - 1)
    return proof.values_list(Literal(PROOF), *missing, previous_from, NO_VALUE)


def state_row(row_id: str) -> str:
    """Return a query for a row with the ID `row_id` and the values of `State`, as text."""
    values = [Cast(value, TextField()) for value in ("revision", current_epoch(), "change_number", "change_id")]
    sql = compile_queryset(state_of_access().values_list(Literal(row_id), *values))
    return padded(sql, columns=1 + len(values))


def padded(sql: str, *, columns: int) -> str:
    """Return the query for rows with so many columns as one for rows with all columns of `Row`. The others are null."""
    return f"SELECT *{', NULL' * (ROW_COLUMNS - columns)} FROM ({sql}) AS row"


def access_values(access: Access) -> dict[str, Any]:
    """Return the values of the placeholders for an access."""
    return {"organization_id": access.organization_id, "mode": access.mode}


def state_of_access() -> QuerySet[AccessState, AccessState]:
    """Return a query for the state of the payments of an access that is bound when the statement runs."""
    return AccessState.objects.filter(organization_id=Placeholder("organization_id"), mode=Placeholder("mode"))
