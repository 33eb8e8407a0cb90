"""An import reads records in batches that limit its memory."""

import pytest
from pytest_django import Settings

from payments.ingest.batches import BATCH_BYTES, read_batches
from payments.ingest.formats.sources import RAW_BYTES_MAX
from tests.support.lines import line, source


def batch_sizes(lines: list[bytes]) -> list[int]:
    return [len(batch.entries) for batch in read_batches([source(b"\n".join(lines))])]


def test_number_of_records_ends_a_batch(settings: Settings) -> None:
    settings.PAYMENTS_IMPORT_BATCH_RECORDS = 2

    assert batch_sizes([line()] * 5) == [2, 2, 1]


def test_bytes_of_records_end_a_batch() -> None:
    half_a_batch = line(description="a" * (BATCH_BYTES // 2))

    assert batch_sizes([half_a_batch] * 5) == [2, 2, 1]


def test_record_that_reaches_the_maximum_of_bytes_ends_a_batch() -> None:
    half_a_batch = line(description="a" * (BATCH_BYTES // 2 - len(line(description=""))))

    assert len(half_a_batch) == BATCH_BYTES // 2
    assert batch_sizes([half_a_batch] * 3) == [2, 1]


def test_repeated_payments_are_written_in_separate_rounds() -> None:
    [batch] = read_batches([source(b"\n".join([line(id="pt_1"), line(id="pt_2"), line(id="pt_1", status="failed")]))])

    assert [[row.id for _, row in rows] for rows in batch.rounds] == [["pt_1", "pt_2"], ["pt_1"]]
    assert [location.line for location, _ in batch.rounds[1]] == [3]
    assert not batch.has_errors


def test_invalid_record_is_an_entry_but_no_row() -> None:
    [batch] = read_batches([source(line(id="pt_1") + b'\n{"id":1}')])

    assert [len(batch.entries), batch.rounds] == [2, [batch.entries[:1]]]
    assert batch.has_errors


@pytest.mark.parametrize("end", [b"}", b',"x":1}'])
def test_record_beyond_the_maximum_of_bytes_is_not_parsed(end: bytes) -> None:
    start = line().removesuffix(b"}")
    longest, longer = (start.ljust(length - len(end)) + end for length in (RAW_BYTES_MAX, RAW_BYTES_MAX + 1))

    [batch] = read_batches([source(b"\n".join([longest, longer]))])

    assert [str(entry) for _, entry in batch.entries][1:] == ["is longer than 1048576 bytes"]
    assert batch.has_errors
    assert len(batch.rounds[0] if batch.rounds else []) == (end == b"}")
