"""CSV files for a bookkeeper: chosen columns with the names of the admin's pages, local times, and totals.

Refunded, fees and net are those of succeeded payments, so the sum of such a column is the total of the file. An import
cannot read these files.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from msgspec.structs import fields

from payments.export.files import BYTE_ORDER_MARK, CSV_TYPE, TEXT_TYPES, TITLES, csv_lines
from payments.ingest.formats.spreadsheets import protect_formulas
from payments.listing.search_terms import json_text
from payments.models import Mode, Status
from payments.models.days import local_time
from payments.record import Details, DetailsDocument, Metadata, Time, parse_record_time
from payments.rows import COLUMN_INDEX, FIELDS, RowValues
from payments.totals.figures import KNOWN, Figures, Total, add_up, figures_by_currency
from payments.totals.report import decimal_text

Cell = Callable[[RowValues], str]

DECIMALS = {"point": ".", "comma": ","}
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t"}

# The headings that differ from the words of the field's name, such as `Sequence type`, or `Created` for `createdAt`.
HEADINGS = {
    "id": "Payment",
    "amount.value": "Amount",
    "amount.currency": "Currency",
    "amountNet.value": "Net amount",
    "amountNet.currency": "Net currency",
    "amountRemaining.value": "Remaining amount",
    "amountRemaining.currency": "Remaining currency",
    "redirectUrl": "Redirect URL",
    "webhookUrl": "Webhook URL",
}
DEFAULT_COLUMNS = (
    *("id", "createdAt", "paidAt", "amount.value", "amount.currency", "refunded", "fees", "net"),
    *("status", "method", "customerId", "description", "metadata"),
)
MEMBER = re.compile(r"(metadata|details)\.([^\x00-\x1f\x7f]{1,1024})")
COLUMNS_MAX = 100

TYPES = {title: field.type for field in FIELDS for title in field.titles}
AMOUNT, CURRENCY, STATUS, MODE = (COLUMN_INDEX[name] for name in ("amount", "amount_currency", "status", "mode"))


class InvalidColumns(ValueError):
    """A file cannot have these columns. The text says why."""


@dataclass(frozen=True)
class BookOptions:
    """The choices for a file; the members of `DECIMALS` and `DELIMITERS` by name."""

    columns: Sequence[str] = DEFAULT_COLUMNS
    decimal: str = "point"
    delimiter: str = "comma"
    time_zone: str = "UTC"
    totals: bool = False


class Book:
    """A CSV file for a bookkeeper, which is written in parts. `totals` are the sums of the parts that were written."""

    content_type = CSV_TYPE

    def __init__(self, options: BookOptions, totals: Iterable[Total] = ()) -> None:
        self.options = options
        self.totals = list(totals)
        self.zone = ZoneInfo(options.time_zone)
        self.cells = list(map(self.cell, options.columns))

    @property
    def start(self) -> bytes:
        return BYTE_ORDER_MARK + self.lines([list(map(self.heading, self.options.columns))])

    def write(self, rows: Iterable[RowValues]) -> bytes:
        """Return the lines of payments, and add these to the totals."""
        rows = list(rows)
        if self.options.totals:
            self.totals = add_up([*self.totals, *(total_of(row) for row in rows if row[STATUS] == Status.SUCCEEDED)])
        return self.lines([cell(row) for cell in self.cells] for row in rows)

    def end(self) -> bytes:
        """Return an empty line and the totals of each currency; nothing without totals."""
        figures = figures_by_currency(self.totals)
        return b"\r\n" * bool(figures) + self.lines(line for row in figures for line in self.total_lines(row))

    def total_lines(self, figures: Figures) -> Iterator[list[str]]:
        label = f"Total {figures.currency}: "
        yield [f"{label}succeeded payments", str(figures.succeeded)]
        yield [f"{label}paid", self.money(figures.paid)]
        for name, known_name in KNOWN.items():
            known = getattr(figures, known_name)
            note = [] if known == figures.succeeded else [f"known for {known} of {figures.succeeded} payments"]
            yield [f"{label}{name}", self.figure(name, figures), *note]

    def figure(self, name: str, figures: Figures | Total) -> str:
        """Return a figure; an empty text if it is known for no payment."""
        return self.money(getattr(figures, name)) if getattr(figures, KNOWN[name]) else ""

    def lines(self, rows: Iterable[Sequence[str]]) -> bytes:
        return csv_lines(rows, delimiter=DELIMITERS[self.options.delimiter])

    def heading(self, column: str) -> str:
        heading = protect_formulas(column_label(column))
        return f"{heading} ({self.options.time_zone})" if TYPES.get(column) == Time else heading

    def cell(self, column: str) -> Cell:
        if column in KNOWN:
            return lambda row: self.figure(column, total_of(row))
        if member := MEMBER.fullmatch(column):
            index, name = COLUMN_INDEX[member[1]], member[2]
            return lambda row: protect_formulas(dict(text_members(row[index] or "{}")).get(name, ""))
        index, convert = TITLES.index(column), self.converter(column)
        return lambda row: convert(row[index] or "")

    def converter(self, title: str) -> Callable[[str], str]:
        """Return the function that returns a cell for the text in a row's column."""
        type_ = TYPES[title]
        if type_ == Time:
            return lambda text: text and local_time(parse_record_time(text), self.zone).isoformat(" ", "seconds")
        if type_ in {Metadata, DetailsDocument}:
            return lambda document: protect_formulas(", ".join(map(": ".join, text_members(document or "{}"))))
        if type_ in TEXT_TYPES:
            return protect_formulas
        return self.decimal if title.endswith(".value") else str

    def money(self, hundredths: int) -> str:
        return self.decimal(decimal_text(hundredths))

    def decimal(self, value: str) -> str:
        return value.replace(".", DECIMALS[self.options.decimal])


def total_of(row: RowValues) -> Total:
    """Return the sums of a payment. Only a succeeded payment has a net or a remaining amount that is known.

    Test payments have sums of their own: they moved no money.
    """
    amount = hundredths(row[AMOUNT])
    net, remaining = (known_amount(row, money) for money in ("amount_net", "amount_remaining"))
    return Total(
        f"{row[CURRENCY]} (test)" if row[MODE] == Mode.TEST else row[CURRENCY],
        status=row[STATUS],
        method="",
        payments=1,
        amount=amount,
        net_known=int(net is not None),
        net=net or 0,
        fees=0 if net is None else amount - net,
        remaining_known=int(remaining is not None),
        refunded=0 if remaining is None else amount - remaining,
    )


def known_amount(row: RowValues, money: str) -> int | None:
    """Return `amount_net` or `amount_remaining` of a succeeded payment, if it has the currency of the amount."""
    is_known = row[STATUS] == Status.SUCCEEDED and row[COLUMN_INDEX[f"{money}_currency"]] == row[CURRENCY]
    return hundredths(row[COLUMN_INDEX[money]]) if is_known else None


def hundredths(value: str) -> int:
    return int(value.replace(".", ""))


def text_members(document: str | bytes) -> list[tuple[str, str]]:
    """Return the members of a JSON object as texts. Values that are not texts stay in JSON."""
    return [(name, json_text(value)) for name, value in json.loads(document).items()]


def words(name: str) -> str:
    """Return a name in camel case as words: `Card number` for `cardNumber`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).capitalize()


def column_label(column: str) -> str:
    if member := MEMBER.fullmatch(column):
        return words(member[2]) if member[1] == "details" else f"Metadata: {member[2]}"
    return HEADINGS.get(column) or words(column.removesuffix("At").removesuffix("Id"))


# The columns that a page offers. Others are members of the metadata and the details.
CARD_COLUMNS = [f"details.{field.encode_name}" for field in fields(Details)]
COLUMNS = [*dict.fromkeys([*DEFAULT_COLUMNS, *TITLES, *CARD_COLUMNS])]


def parse_columns(names: Iterable[str]) -> list[str]:
    """Return the columns with these names, each once. The name of an amount stands for its value and its currency.

    :raises InvalidColumns: there is no such column, or they are too many
    """
    columns = {field.json_name: field.titles for field in FIELDS} | {column: [column] for column in COLUMNS}
    parsed: dict[str, None] = {}
    for name in names:
        if name not in columns and not MEMBER.fullmatch(name):
            raise InvalidColumns(f"{name!r} is not a column. Use {', '.join(COLUMNS)}, or another metadata.KEY.")
        parsed.update(dict.fromkeys(columns.get(name, [name])))
    if len(parsed) > COLUMNS_MAX:
        raise InvalidColumns(f"Choose at most {COLUMNS_MAX} columns.")
    return list(parsed)
