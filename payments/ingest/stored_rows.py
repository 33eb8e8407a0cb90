"""The row of a payment as an import writes it, derived from the declaration of the record."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date

from msgspec import Struct, defstruct

from payments.models import Access, DayKind, Days, UtcDay
from payments.record import Record, encode
from payments.rows import COLUMNS, FIELDS, StoredField, call_expression, compile_function


class StoredRow(Struct, frozen=True, gc=False):
    """The columns that identify a payment. All rows also have the other columns of `STORED_COLUMNS`.

    Values are texts, which both databases read; amounts too, so they stay exact. Only `organization_id` is a number.
    `gc=False`: the garbage collector need not visit the many rows of a batch.
    """

    id: str
    organization_id: int
    mode: str
    created_at: str
    paid_at: str | None


FullRow = defstruct(
    "FullRow",
    [(column, str | None) for column in COLUMNS if column not in StoredRow.__struct_fields__],
    bases=(StoredRow,),
    frozen=True,
    gc=False,
)

STORED_COLUMNS = FullRow.__struct_fields__


def stored_time(time: str) -> str:
    """Return a record's time as Django writes it: in UTC, without fraction if it is zero."""
    return f"{time[:10]} {time[11:19]}" if time.endswith(".000") else f"{time[:10]} {time[11:]}000"


def row_function(
    name: str, parameter: str, expressions_of: Callable[[StoredField], dict[str, str]]
) -> Callable[..., StoredRow]:
    """Return a function that builds a row; `expressions_of` returns the Python expression of each column of a field."""
    expressions: dict[str, str] = {}
    for field in FIELDS:
        expressions |= expressions_of(field)
    result = call_expression("FullRow", (expressions[column] for column in STORED_COLUMNS))
    built: Callable[..., StoredRow] = compile_function(
        name, parameter, result, FullRow=FullRow, encode=encode, stored_time=stored_time
    )
    return built


def store_expressions(field: StoredField) -> dict[str, str]:
    """Return the Python expression of each column of a field of `record`."""
    value = f"record.{field.name}"
    return {
        column: f"{field.kind.absent} if {value} is UNSET else {store.format(value)}"
        if field.is_optional
        else store.format(value)
        for column, store in zip(field.columns, field.kind.store, strict=True)
    }


# Builds the row of a validated record.
stored_row: Callable[[Record], StoredRow] = row_function("stored_row", "record", store_expressions)


def days(rows: Iterable[StoredRow]) -> Days:
    """Return the UTC days on which the payments of the rows were created and paid."""
    # Plain tuples are faster, and a batch has far fewer days than rows.
    texts = {(row.organization_id, row.mode, row.created_at[:10], row.paid_at and row.paid_at[:10]) for row in rows}
    by_access: Days = defaultdict(set)
    for organization_id, mode, created, paid in texts:
        for kind, day in ((DayKind.CREATED, created), (DayKind.PAID, paid)):
            if day:
                by_access[Access(organization_id, mode)].add(UtcDay(kind, date.fromisoformat(day)))
    return by_access
