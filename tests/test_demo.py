"""Demo payments are realistic and reproducible."""

from collections import Counter
from itertools import islice

import pytest

from payments.demo import SPAN, demo_records
from payments.ingest.validation import validate_record
from payments.models import Mode, Status
from payments.record import encode
from tests.support.factories import NOON

COUNT = 3000


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return [encode(record) for record in demo_records(COUNT, seed=1, until=NOON)]


def test_number_of_payments_is_exact(lines: list[bytes]) -> None:
    assert len(lines) == len(set(lines)) == COUNT
    assert [len(list(demo_records(count, seed=1, until=NOON))) for count in (0, 1, 2, 99)] == [0, 1, 2, 99]


def test_import_accepts_every_record(lines: list[bytes]) -> None:
    assert all(encode(validate_record(line).record) == line for line in lines)


def test_seed_determines_the_payments(lines: list[bytes]) -> None:
    same_seed = [encode(record) for record in demo_records(COUNT, seed=1, until=NOON)]
    other_seed = {encode(record) for record in demo_records(COUNT, seed=2, until=NOON)}

    assert same_seed == lines
    assert other_seed.isdisjoint(lines)


def test_higher_count_begins_with_the_same_payments(lines: list[bytes]) -> None:
    assert [encode(record) for record in islice(demo_records(10 * COUNT, seed=1, until=NOON), 100)] == lines[:100]


def test_payments_have_many_kinds_of_values_and_shared_times() -> None:
    records = list(demo_records(COUNT, seed=1, until=NOON))

    times = Counter(record.created_at for record in records)
    sharing_a_time = sum(count for count in times.values() if count > 1)
    assert {record.status for record in records} == set(Status.values)
    assert {record.mode for record in records} == set(Mode.values)
    assert len({record.organization_id for record in records}) == 3
    assert len({record.method for record in records}) > 4
    assert len({record.amount.currency for record in records}) > 3
    assert 0.25 < sharing_a_time / COUNT < 0.45
    assert all(str((NOON - SPAN).date()) <= record.created_at < "2026-01-01T12:00:00.000" for record in records)
