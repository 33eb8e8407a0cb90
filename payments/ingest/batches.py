"""The records of all sources, parsed and divided into batches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from payments.ingest.fast_path import parse_canonical
from payments.ingest.reading import Location, Source, UnreadableSource, read_records
from payments.ingest.stored_rows import StoredRow, days, stored_row
from payments.ingest.validation import InvalidRecord, validate_record
from payments.totals import OrganizationDay

# A batch ends as soon as it reaches one of these limits.
BATCH_RECORDS = 5000
BATCH_BYTES = 2**24

LocatedRow: TypeAlias = tuple[Location, StoredRow]
LocatedError: TypeAlias = tuple[Location, InvalidRecord | UnreadableSource]
Entry: TypeAlias = tuple[Location, StoredRow | InvalidRecord | UnreadableSource]


@dataclass
class Batch:
    """Consecutive records of the sources, parsed and ready to be written."""

    entries: list[Entry]  # in the order of the sources
    rounds: list[list[LocatedRow]]  # all rows; a round contains a payment at most once
    days: set[OrganizationDay]  # of all rows

    @property
    def organization_ids(self) -> set[int]:
        return {day.organization_id for day in self.days}

    @property
    def has_errors(self) -> bool:
        return sum(map(len, self.rounds)) < len(self.entries)


def read_batches(sources: Iterable[Source], *, trusts_texts: bool = False) -> Iterator[Batch]:
    """Yield the records of the sources in batches of limited size. For `trusts_texts`, see `validate_record`."""
    entries: list[Entry] = []
    size = 0
    for entry, length in parse_sources(sources, trusts_texts=trusts_texts):
        entries.append(entry)
        size += length
        if len(entries) == BATCH_RECORDS or size >= BATCH_BYTES:
            yield build_batch(entries)
            entries, size = [], 0
    if entries:
        yield build_batch(entries)


def parse_sources(sources: Iterable[Source], *, trusts_texts: bool) -> Iterator[tuple[Entry, int]]:
    """Yield a row or an error for each record, and the record's length in bytes.

    A source that cannot be read to its end adds one more error.
    """
    for source in sources:
        try:
            for location, text in read_records(source):
                yield (location, parse(text, trusts_texts=trusts_texts)), len(text)
        except UnreadableSource as error:
            yield (error.location, error), 0


def parse(text: bytes, *, trusts_texts: bool = False) -> StoredRow | InvalidRecord:
    """Return the row of a record, or the error if the record is invalid."""
    try:
        return parse_canonical(text, trusts_texts=trusts_texts) or stored_row(
            validate_record(text, trusts_texts=trusts_texts)
        )
    except InvalidRecord as error:
        return error


def build_batch(entries: list[Entry]) -> Batch:
    rows = [(location, content) for location, content in entries if isinstance(content, StoredRow)]
    return Batch(entries, rounds=list(divide_into_rounds(rows)), days=days(row for _, row in rows))


def divide_into_rounds(rows: list[LocatedRow]) -> Iterator[list[LocatedRow]]:
    """Yield the first row of every payment, then the second row of every payment that has one, and so on."""
    while rows:
        first_rows: dict[str, LocatedRow] = {}
        later_rows = [located for located in rows if first_rows.setdefault(located[1].id, located) is not located]
        yield list(first_rows.values())
        rows = later_rows
