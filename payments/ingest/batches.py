"""The records of all sources, parsed and divided into batches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from payments.ingest.errors import InvalidRecord
from payments.ingest.fast_path import parse_canonical
from payments.ingest.reading import read_records
from payments.ingest.sources import Location, RawRecord, Source, UnreadableSource
from payments.ingest.stored_rows import StoredRow, days, stored_row
from payments.ingest.validation import STRICT, Options, validate_record
from payments.totals import OrganizationDay

# A batch ends as soon as it reaches one of these limits.
BATCH_RECORDS = 5000
BATCH_BYTES = 2**24

LocatedRow: TypeAlias = tuple[Location, StoredRow]
LocatedError: TypeAlias = tuple[Location, InvalidRecord | UnreadableSource]
Entry: TypeAlias = tuple[Location, StoredRow | InvalidRecord | UnreadableSource]


class Parsed(NamedTuple):
    """A record as a row or an error, its length in bytes, and how many of its members were skipped."""

    entry: Entry
    length: int
    ignored: int = 0


@dataclass
class Batch:
    """Consecutive records of the sources, parsed and ready to be written."""

    entries: list[Entry]  # in the order of the sources
    rounds: list[list[LocatedRow]]  # all rows; a round contains a payment at most once
    days: set[OrganizationDay]  # of all rows
    ignored: int  # members of the records that were skipped

    @property
    def organization_ids(self) -> set[int]:
        return {day.organization_id for day in self.days}

    @property
    def has_errors(self) -> bool:
        return sum(map(len, self.rounds)) < len(self.entries)


def read_batches(sources: Iterable[Source], options: Options = STRICT) -> Iterator[Batch]:
    """Yield the records of the sources in batches of limited size."""
    records: list[Parsed] = []
    size = 0
    for parsed in parse_sources(sources, options):
        records.append(parsed)
        size += parsed.length
        if len(records) == BATCH_RECORDS or size >= BATCH_BYTES:
            yield build_batch(records)
            records, size = [], 0
    if records:
        yield build_batch(records)


def parse_sources(sources: Iterable[Source], options: Options) -> Iterator[Parsed]:
    """Yield all records. A source that cannot be read to its end adds one more error."""
    for source in sources:
        try:
            for raw in read_records(source, ignores_unknown_fields=options.ignores_unknown_fields):
                yield parse(raw, options)
        except UnreadableSource as error:
            yield Parsed((error.location, error), length=0)


def parse(raw: RawRecord, options: Options = STRICT) -> Parsed:
    """Return the row of a record, or the error if the record is invalid."""
    location, text, error = raw
    if error:
        return Parsed((location, error), len(text))
    if row := parse_canonical(text, trusts_texts=options.trusts_texts):
        return Parsed((location, row), len(text))
    try:
        record, ignored = validate_record(text, options)
    except InvalidRecord as invalid:
        return Parsed((location, invalid), len(text))
    return Parsed((location, stored_row(record)), len(text), ignored)


def build_batch(records: Sequence[Parsed]) -> Batch:
    entries = [parsed.entry for parsed in records]
    rows = [(location, content) for location, content in entries if isinstance(content, StoredRow)]
    return Batch(
        entries,
        rounds=list(divide_into_rounds(rows)),
        days=days(row for _, row in rows),
        ignored=sum(parsed.ignored for parsed in records),
    )


def divide_into_rounds(rows: list[LocatedRow]) -> Iterator[list[LocatedRow]]:
    """Yield the first row of every payment, then the second row of every payment that has one, and so on."""
    while rows:
        first_rows: dict[str, LocatedRow] = {}
        later_rows = [located for located in rows if first_rows.setdefault(located[1].id, located) is not located]
        yield list(first_rows.values())
        rows = later_rows
