"""The records of all sources, parsed and divided into batches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from payments.conf import conf
from payments.ingest.errors import InvalidRecord, unreadable
from payments.ingest.fast_path import parse_canonical
from payments.ingest.formats.detection import read_records
from payments.ingest.formats.sources import RAW_BYTES_MAX, Location, RawRecord, Source, UnreadableSource
from payments.ingest.stored_rows import StoredRow, days, stored_row
from payments.ingest.translations import translate
from payments.ingest.validation import STRICT, Options, validate_record
from payments.models import Days

# A batch also ends after IMPORT_BATCH_RECORDS records.
BATCH_BYTES = 2**21

RAW_TOO_LONG = InvalidRecord.of(None, f"is longer than {RAW_BYTES_MAX} bytes")

LocatedRow: TypeAlias = tuple[Location, StoredRow]
Entry: TypeAlias = tuple[Location, StoredRow | InvalidRecord | UnreadableSource]

# The row or the error of a record, its length in bytes, how many of its members were skipped, and how many have numbers
# that look like card numbers. A named tuple would take several percent of an import.
Parsed: TypeAlias = tuple[Entry, int, int, int]


@dataclass
class Batch:
    """Consecutive records of the sources, parsed and ready to be written."""

    entries: list[Entry]  # in the order of the sources
    rounds: list[list[LocatedRow]]  # all rows; a round contains a payment at most once
    days: Days  # of all rows
    ignored: int  # members of the records that were skipped
    not_cards: int  # members of the details with numbers that look like card numbers

    @property
    def organization_ids(self) -> set[int]:
        return {access.organization_id for access in self.days}

    @property
    def has_errors(self) -> bool:
        return sum(map(len, self.rounds)) < len(self.entries)


def read_batches(sources: Iterable[Source], options: Options = STRICT) -> Iterator[Batch]:
    records: list[Parsed] = []
    size = 0
    records_max = conf.IMPORT_BATCH_RECORDS
    for parsed in parse_sources(sources, options):
        _, length, _, _ = parsed
        records.append(parsed)
        size += length
        if len(records) == records_max or size >= BATCH_BYTES:
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
            yield (error.location, error), 0, 0, 0


def parse(raw: RawRecord, options: Options = STRICT) -> Parsed:
    """Return the row of a record, or the error if the record is invalid. A bug costs no other record."""
    location, text, error, ignored_columns = raw
    if len(text) > RAW_BYTES_MAX:
        error = RAW_TOO_LONG
    if error:
        return (location, error), len(text), 0, 0
    try:
        if options.translations:
            text = translate(text, options.translations)
        if row := parse_canonical(text, trusts_texts=options.trusts_texts):
            return (location, row), len(text), ignored_columns, 0
        record, ignored, not_cards = validate_record(text, options)
        return (location, stored_row(record)), len(text), ignored + ignored_columns, not_cards
    except InvalidRecord as invalid:
        return (location, invalid.with_traceback(None)), len(text), 0, 0  # its frames have the values of the record
    except Exception as bug:  # noqa: BLE001
        return (location, unreadable(bug)), len(text), 0, 0


def build_batch(records: list[Parsed]) -> Batch:
    entries, _, ignored, not_cards = zip(*records, strict=True)
    rows = [(location, content) for location, content in entries if isinstance(content, StoredRow)]
    rounds = list(divide_into_rounds(rows))
    return Batch(list(entries), rounds, days(row for _, row in rows), sum(ignored), sum(not_cards))


def divide_into_rounds(rows: list[LocatedRow]) -> Iterator[list[LocatedRow]]:
    """Yield the first row of every payment, then the second row of every payment that has one, and so on."""
    while rows:
        first_rows: dict[str, LocatedRow] = {}
        later_rows = [located for located in rows if first_rows.setdefault(located[1].id, located) is not located]
        yield list(first_rows.values())
        rows = later_rows
