"""How a record is stored: the database columns of its members, derived from the declaration in `record`.

The conversions run for each payment of a page, an export and an import. With access by name they would take about twice
as long. Therefore their source is generated once, from the declaration, as `dataclasses` does it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast, get_args, get_type_hints

from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import fields

from payments.expressions import DecimalText, TimeText
from payments.record import DetailsDocument, Metadata, Money, OrganizationId, Record, Time, WrittenRecord

# A row of the database: its values as text, in the order of `COLUMNS`. A page's rows have more columns at the end.
Row: TypeAlias = tuple[Any, ...]

# The members that are not stored: one is constant, the other is made of the id.
NOT_STORED = {"resource": "'payment'", "links": "links"}


class Kind(NamedTuple):
    """How members of one type are stored. Its texts are Python expressions; {0} and {1} stand for their inputs."""

    select: Sequence[Callable[[str], Any]]  # one expression for each column
    load: str  # columns as the database returns them -> member
    store: Sequence[str]  # member -> columns as the database takes them
    store_json: Sequence[str]  # texts of a canonical record -> the same columns
    absent: str = "None"  # the value of the columns if the member is absent
    suffixes: Sequence[str] = ("",)  # of the columns' names
    titles: Sequence[str] = ("",)  # of the columns in a CSV file, appended to the member's JSON name


TEXT = Kind(select=[F], load="{0}", store=["{0}"], store_json=["{0}"], absent="''")
NUMBER = Kind(select=[lambda name: Cast(name, TextField())], load="{0}", store=["int({0})"], store_json=["int({0})"])
TIME = Kind(select=[TimeText], load="{0}", store=["stored_time({0})"], store_json=["stored_time({0})"])
DOCUMENT = Kind(select=[F], load="Raw({0})", store=["encode({0}).decode()"], store_json=["{0}"])
MONEY = Kind(
    select=[DecimalText, F],
    load="Money({0}, {1})",
    store=["{0}.value", "{0}.currency"],
    store_json=["{0}", "{1}"],
    suffixes=["", "_currency"],
    titles=[".value", ".currency"],
)
KINDS = ((Money, MONEY), (Time, TIME), (OrganizationId, NUMBER), (Metadata, DOCUMENT), (DetailsDocument, DOCUMENT))


class Member(NamedTuple):
    """A stored member of the record."""

    name: str  # the attribute of `Record` and the field of the model
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

    def if_present(self, expression: str, *, column: str, otherwise: str) -> str:
        """Return the Python expression, guarded if the member is optional: `column` has its absent value then."""
        if not self.is_optional:
            return expression
        is_absent = f"not {column}" if self.kind.absent == "''" else f"{column} is None"
        return f"{otherwise} if {is_absent} else {expression}"


def stored_members() -> list[Member]:
    hints = get_type_hints(Record, include_extras=True)
    return [
        stored_member(field.name, field.encode_name, hints[field.name])
        for field in fields(Record)
        if field.name not in NOT_STORED
    ]


def stored_member(name: str, json_name: str, hint: Any) -> Member:
    is_optional = UnsetType in get_args(hint)
    type_ = get_args(hint)[0] if is_optional else hint
    kind = next((kind for known, kind in KINDS if known == type_), TEXT)
    return Member(name, json_name, type_, kind, is_optional)


MEMBERS = stored_members()

# The columns of a row by name, and the expression that selects each as text. The database formats amounts and times:
# converting them to Decimal and datetime, and formatting those, would take longer than the query. The database does not
# build the JSON, because its server is the hardest to scale.
COLUMNS: dict[str, Any] = {
    column: select(column)
    for member in MEMBERS
    for column, select in zip(member.columns, member.kind.select, strict=True)
}
POSITIONS = {column: position for position, column in enumerate(COLUMNS)}
ID = POSITIONS["id"]


def as_rows(payments: QuerySet[Any, Any], *more: Any) -> QuerySet[Any, Row]:
    """Select the columns of the record as text, and `more` expressions behind them."""
    return cast("QuerySet[Any, Row]", payments.values_list(*COLUMNS.values(), *more))


def function(name: str, parameters: str, result: str, **names: Any) -> Any:
    """Return a function whose body is one Python expression; `names` are the names that the expression uses."""
    namespace = {"UNSET": UNSET, **names}
    exec(f"def {name}({parameters}):\n    return {result}", namespace)  # noqa: S102  built from constants of this project
    return namespace[name]


def call(name: str, arguments: Iterable[str]) -> str:
    return f"{name}({', '.join(arguments)})"


def loaded(member: Member) -> str:
    """Return the expression that makes the member of the columns of `row`."""
    columns = [f"row[{POSITIONS[column]}]" for column in member.columns]
    return member.if_present(member.kind.load.format(*columns), column=columns[0], otherwise="UNSET")


LOADED = {**NOT_STORED, **{member.name: loaded(member) for member in MEMBERS}}

# Builds the record of a row, with its links if they are given. The result has the attributes of a `Record`.
build_record: Callable[..., Record] = function(
    "build_record",
    "row, links=UNSET",
    call("WrittenRecord", (LOADED[field.name] for field in fields(Record))),
    WrittenRecord=WrittenRecord,
    Money=Money,
    Raw=Raw,
)
