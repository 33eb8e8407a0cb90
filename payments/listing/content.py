"""What a response contains: payments, and their state in the same snapshot, both read by one statement.

On PostgreSQL, the statement can read the API key too. The payments are those of the key's organization and mode, so a
key that has just been revoked or moved shows nothing that it does not give access to.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import QuerySet, TextField, Value
from django.db.models.functions import Cast
from xxhash import xxh3_64_hexdigest

from payments.database.statements import Placeholder, Rows, Statement, WrongStatement, compile_queryset
from payments.models import Access, AccessState, current_epoch
from payments.models.expressions import Literal
from payments.rows import ID, Row, RowValues, select_columns
from payments.runtime.servers import PRIMARY

NO_VALUE: Any = Value(None, output_field=TextField())

ROW_COLUMNS = len(Row._fields)

# The ID of a row which proves something. The last row, with the state and the key, has one with a digest of the
# statement.
PROOF = "proof"
PAYMENT_PREFIX = "pt_"  # of a payment's ID

# Cached statements that also read the key: the list's without filters, and the feed's.
KEY_STATEMENTS_MAX = 1000


class Proof(NamedTuple):
    """The first row, after its ID: the database knows the start of a page.

    With filters, it says where the previous page starts.
    """

    previous_from: str | None


class State(NamedTuple):
    """The revision of the payments of an organization and mode, the epoch, and the newest change."""

    revision: int
    epoch: int
    change_number: int
    change_id: int


class End(NamedTuple):
    """The last row, after its ID: the values of `State`, and the API key if the statement has read it.

    All are texts. The time of the key's last use is in seconds since 1970.
    """

    revision: str | None
    epoch: str | None
    change_number: str | None
    change_id: str | None
    key_id: str | None
    organization_id: str | None
    mode: str | None
    scope: str | None
    last_used_at: str | None

    @property
    def key(self) -> tuple[str | None, ...]:
        return self[len(State._fields) :]

    @property
    def state(self) -> State | None:
        values = self[: len(State._fields)]
        return None if None in values else State._make(map(int, values))  # type: ignore[arg-type]


class Content(NamedTuple):
    """Payments, and their state in the same snapshot.

    `revision` identifies the state: 0 if the payments have never changed, but None for a replica, which may lack the
    first change.
    """

    rows: list[RowValues]
    end: End | None = None
    proof: Proof | None = None
    revision: int | None = 0

    @property
    def state(self) -> State | None:
        """Return the state; None if the payments have never changed."""
        return self.end and self.end.state


class ContentStatement(Statement):
    """A statement for the content of a response; `payments` and `proof` are SQL for rows of `Row`'s columns.

    It has placeholders for the access (`organization_id` and `mode`) and those of its parts. `has_filters`: their
    values decide which index is best.
    """

    def __init__(self, payments: str | None = None, *, proof: str | None = None, has_filters: bool = False) -> None:
        self.parts = [part for part in (proof, payments) if part is not None]
        self.has_proof = proof is not None
        self.has_filters = has_filters
        self.end_id = f"end {xxh3_64_hexdigest(''.join(self.parts).encode())}"
        end = padded(f"SELECT '{self.end_id}', state.* FROM ({state_sql()}) AS state", columns=1 + len(State._fields))
        super().__init__(" UNION ALL ".join([*self.parts, end]), is_planned_each_time=has_filters)

    def content(self, rows: Rows, *, using: str = PRIMARY) -> Content:
        """Return the content that the statement's rows contain.

        :raises WrongStatement: they are the rows of another statement
        """
        end = proof = None
        if rows and rows[-1][ID] == self.end_id:
            end = End._make(rows.pop()[1 : 1 + len(End._fields)])
        if rows and rows[0][ID] == PROOF:
            proof = Proof._make(rows.pop(0)[1 : 1 + len(Proof._fields)])
        if rows and not str(rows[-1][ID]).startswith(PAYMENT_PREFIX):
            raise WrongStatement
        if end is None or end.revision is None:
            return Content(rows, end, proof, revision=0 if using == PRIMARY else None)
        return Content(rows, end, proof, revision=int(end.revision))


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
        rows = self.statement.rows({**self.values, **access._asdict()}, using)
        return self.statement.content(rows, using=using)

    def read_with_key(self, key_sql: str, digest: str) -> Content:
        """Return the content for the access of the key with a digest, and the key. Without a key, there is no content.

        `key_sql` selects the last five columns of `End`, and has the placeholder `digest`. Only on PostgreSQL.
        """
        rows = statement_with_key(self.statement, key_sql).rows({**self.values, "digest": digest})
        return self.statement.content(rows)


@lru_cache(KEY_STATEMENTS_MAX)
def statement_with_key(content: ContentStatement, key_sql: str) -> Statement:
    """Return a statement for the content and its key.

    The key is a materialized subquery, so PostgreSQL reads the key first, and uses its organization and mode to find
    the payments in the same indexes.
    """
    key_columns = "api_key.id::text, api_key.organization_id::text, api_key.mode, api_key.scope, api_key.last_used_at"
    end = f"SELECT '{content.end_id}', state.*, {key_columns} FROM api_key LEFT JOIN ({state_sql()}) AS state ON TRUE"
    sql = " UNION ALL ".join([*content.parts, padded(end, columns=1 + len(End._fields))])
    for column in ("organization_id", "mode"):
        sql = sql.replace(f"%({column})s", f"(SELECT {column} FROM api_key)")
    return Statement(f"WITH api_key(id, organization_id, mode, scope, last_used_at) AS MATERIALIZED ({key_sql}) {sql}")


def content_sql(
    payments: QuerySet[Any, Any],
    *,
    previous_from: Any = NO_VALUE,
    change_number: Any = NO_VALUE,
    limit: int | None = None,
) -> str:
    """Return the SQL for the first payments of an unbound QuerySet, with the columns of `Row`."""
    rows = select_columns(payments, previous_from, change_number)
    return f"SELECT * FROM ({compile_queryset(rows[:limit])}) AS part"


def proof_row(proof: QuerySet[Any, Any], *, previous_from: Any = NO_VALUE) -> str:
    """Return a query for a row with the values of `Proof`, if `proof` finds a row."""
    return padded(compile_queryset(proof.values_list(Literal(PROOF), previous_from)), columns=2)


@lru_cache
def state_sql() -> str:
    values = ("revision", current_epoch(), "change_number", "change_id")
    return compile_queryset(state_of_access().values_list(*(Cast(value, TextField()) for value in values)))


def padded(sql: str, *, columns: int) -> str:
    """Return the query for rows with so many columns as one for rows with all columns of `Row`. The others are null."""
    return f"SELECT *{', NULL' * (ROW_COLUMNS - columns)} FROM ({sql}) AS part"


def state_of_access() -> QuerySet[AccessState, AccessState]:
    """Return a query for the state of the payments of an access that is bound when the statement runs."""
    return AccessState.objects.filter(organization_id=Placeholder("organization_id"), mode=Placeholder("mode"))
