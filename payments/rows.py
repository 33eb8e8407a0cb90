"""How a record is stored: the database columns of its fields, derived from the declaration in `record`.

Conversions between rows and records run for each payment of a page, an export and an import. With access by name they
would take about twice as long. Therefore their source is generated from the declaration once, as `dataclasses` does it.
"""

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_type_hints

from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast
from msgspec import UNSET, Raw
from msgspec.structs import FieldInfo, fields

from payments.models import Payment
from payments.models.expressions import DecimalText, TimeText
from payments.record import (
    DetailsDocument,
    Metadata,
    Money,
    OrganizationId,
    Record,
    Time,
    WrittenRecord,
    record_time,
    without_unset,
)

# The values of a payment's columns as text, in the order of `COLUMNS`.
RowValues: TypeAlias = tuple[Any, ...]

# Fields that are not stored, and the Python expression for each. The links are made of the ID.
NOT_STORED = {"resource": "'payment'", "links": "UNSET"}


class Kind(NamedTuple):
    """How fields of one type are stored.

    `load`, `store`, `store_json` and `read` are Python expressions; {0} and {1} stand for their inputs.
    """

    select: Sequence[Callable[[str], Any]]  # the SQL expression of each column
    load: str = "{0}"  # columns, as the database returns them -> value of the field
    read: Sequence[str] = ("{0}",)  # attribute of a model's instance -> the same columns
    store: Sequence[str] = ("{0}",)  # value of the field -> columns, as the database takes them
    store_json: Sequence[str] = ("{0}",)  # texts of a canonical record -> the same columns
    absent: str = "None"  # the columns' value if the field is absent
    suffixes: Sequence[str] = ("",)  # of the columns' names, after the field's name
    titles: Sequence[str] = ("",)  # of the columns in a CSV file, after the field's JSON name


TEXT = Kind([F], absent="''")
NUMBER = Kind([partial(Cast, output_field=TextField())], read=["str({0})"], store=["int({0})"], store_json=["int({0})"])
TIME = Kind([TimeText], read=["record_time({0})"], store=["stored_time({0})"], store_json=["stored_time({0})"])
DOCUMENT = Kind([F], load="Raw({0})", store=["encode({0}).decode()"])
MONEY = Kind(
    [DecimalText, F],
    load="Money({0}, {1})",
    read=["format({0}, '.2f')", "{0}_currency"],
    store=["{0}.value", "{0}.currency"],
    store_json=["{0}", "{1}"],
    suffixes=["", "_currency"],
    titles=[".value", ".currency"],
)
KINDS = ((Money, MONEY), (Time, TIME), (OrganizationId, NUMBER), (Metadata, DOCUMENT), (DetailsDocument, DOCUMENT))


class StoredField(NamedTuple):
    """A field of the record that is stored in one or two columns."""

    name: str  # in `Record` and in the model
    json_name: str
    type: Any
    kind: Kind
    is_optional: bool

    @property
    def columns(self) -> list[str]:
        return [f"{self.name}{suffix}" for suffix in self.kind.suffixes]

    @property
    def titles(self) -> list[str]:
        return [f"{self.json_name}{title}" for title in self.kind.titles]

    def unless_absent(self, expression: str, *, column: str, absent: str) -> str:
        """Return a Python expression for the field's value: `absent` if the field is absent in `column`."""
        if not self.is_optional:
            return expression
        is_absent = f"not {column}" if self.kind.absent == "''" else f"{column} is None"
        return f"{absent} if {is_absent} else {expression}"


def stored_field(declared: FieldInfo, type_hint: Any) -> StoredField:
    type_ = without_unset(type_hint)
    kind = next((kind for known_type, kind in KINDS if known_type == type_), TEXT)
    return StoredField(declared.name, declared.encode_name, type_, kind, is_optional=type_ is not type_hint)


TYPE_HINTS = get_type_hints(Record, include_extras=True)
FIELDS = [
    stored_field(declared, TYPE_HINTS[declared.name]) for declared in fields(Record) if declared.name not in NOT_STORED
]

# The columns of a row by name, and the expression that selects each as text. The database formats amounts and times:
# converting them to Decimal and datetime, and formatting those, would take longer than the query. The database does not
# build the JSON, because its server is the hardest to scale.
COLUMNS: dict[str, Any] = {
    column: select(column) for field in FIELDS for column, select in zip(field.columns, field.kind.select, strict=True)
}
COLUMN_INDEX = {column: position for position, column in enumerate(COLUMNS)}
ID = COLUMN_INDEX["id"]


if TYPE_CHECKING:

    class Row(NamedTuple):
        """The values that a statement of the list or the change feed returns for a payment: also those of `COLUMNS`."""

        id: str
        previous_from: str | None  # the ID that the previous page starts at; null except for the start of a page
        change_number: str | None  # the number of the last change; null except in the change feed
else:
    Row = namedtuple("Row", [*COLUMNS, "previous_from", "change_number"])

# Returns the values with their names. Names for all rows of a large page would take 5 % of the request.
named: Callable[[RowValues], Row] = partial(tuple.__new__, Row)


def select_columns(payments: QuerySet[Any, Any], *more: Any) -> QuerySet[Any, RowValues]:
    return payments.values_list(*COLUMNS.values(), *more)


def compile_function(name: str, parameters: str, result: str, **names: Any) -> Any:
    """Return a function that returns the Python expression `result`; `names` are the globals that it uses."""
    namespace = {"UNSET": UNSET, **names}
    exec(f"def {name}({parameters}):\n    return {result}", namespace)  # noqa: S102  built from constants of this project
    return namespace[name]


def call_expression(name: str, arguments: Iterable[str]) -> str:
    return f"{name}({', '.join(arguments)})"


RECORD_NAMES = {"WrittenRecord": WrittenRecord, "Money": Money, "Raw": Raw}


def record_expression(*, links: str) -> str:
    """Return the expression for the record of `row`; `links` is the one for its links."""
    stored = {}
    for field in FIELDS:
        columns = [f"row[{COLUMN_INDEX[column]}]" for column in field.columns]
        load = field.kind.load.format(*columns)
        stored[field.name] = field.unless_absent(load, column=columns[0], absent="UNSET")
    values = {**NOT_STORED, "links": links, **stored}
    return call_expression("WrittenRecord", (values[declared.name] for declared in fields(Record)))


def read_expressions(field: StoredField) -> list[str]:
    """Return the expressions for the field's columns, read from `payment`, such as `record_time(payment.paid_at)`."""
    attribute = f"payment.{field.name}"
    is_text = field.kind.absent == "''"
    return [
        expression if is_text else field.unless_absent(expression, column=attribute, absent="None")
        for expression in (template.format(attribute) for template in field.kind.read)
    ]


# Returns the values of an instance of the model.
values_of: Callable[[Payment], RowValues] = compile_function(
    "values_of",
    "payment",
    call_expression("", [expression for field in FIELDS for expression in read_expressions(field)]),
    record_time=record_time,
)

# Builds the record of a row. The result has the attributes of a `Record`.
# The generated function begins: return WrittenRecord(row[0], 'payment', row[1], Money(row[2], row[3]), ...
build_record: Callable[[RowValues], Record] = compile_function(
    "build_record", "row", record_expression(links="UNSET"), **RECORD_NAMES
)


def compile_linked_records(links: str) -> Any:
    return compile_function(
        "build_linked_records",
        "rows, parts, quote=methodcaller('replace', '_', '_5F')",
        f"[{record_expression(links=links)} for row in rows]",
        methodcaller=methodcaller,
        **RECORD_NAMES,
    )


# Build the records of rows, by the number of `parts`: those of the JSON of a record's links. Between them is the
# payment's ID: first as it is, then as Django's admin quotes it, if the links include the admin's.
build_linked_records: dict[int, Callable[[Iterable[RowValues], Sequence[str]], list[Record]]] = {
    2: compile_linked_records(f"Raw(f'{{parts[0]}}{{row[{ID}]}}{{parts[1]}}')"),
    3: compile_linked_records(f"Raw(f'{{parts[0]}}{{row[{ID}]}}{{parts[1]}}{{quote(row[{ID}])}}{{parts[2]}}')"),
}
