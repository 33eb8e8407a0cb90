"""Demo payments are believable, and the same every time."""

from collections import Counter
from itertools import islice

import pytest

from payments.demo import SPAN, demo_records
from payments.ingest.validation import checked
from payments.models import Mode, Status
from payments.record import encode
from tests.support.factories import NOON

COUNT = 3000


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return [encode(record) for record in demo_records(COUNT, seed=1, until=NOON)]


def test_there_are_as_many_as_were_asked_for(lines: list[bytes]) -> None:
    assert len(lines) == len(set(lines)) == COUNT
    assert [len(list(demo_records(count, seed=1, until=NOON))) for count in (0, 1, 2, 99)] == [0, 1, 2, 99]


def test_every_one_is_a_record_that_an_import_takes(lines: list[bytes]) -> None:
    assert all(encode(checked(line)) == line for line in lines)


def test_the_same_seed_gives_the_same_and_another_gives_others(lines: list[bytes]) -> None:
    again = [encode(record) for record in demo_records(COUNT, seed=1, until=NOON)]
    others = {encode(record) for record in demo_records(COUNT, seed=2, until=NOON)}

    assert again == lines
    assert others.isdisjoint(lines)


def test_asking_for_more_begins_with_the_same(lines: list[bytes]) -> None:
    assert [encode(record) for record in islice(demo_records(10 * COUNT, seed=1, until=NOON), 100)] == lines[:100]


def test_they_show_all_that_a_listing_has_to_deal_with() -> None:
    records = list(demo_records(COUNT, seed=1, until=NOON))

    moments = Counter(record.created_at for record in records)
    tied = sum(count for count in moments.values() if count > 1)
    assert {record.status for record in records} == set(Status.values)
    assert {record.mode for record in records} == set(Mode.values)
    assert len({record.organization_id for record in records}) == 3
    assert len({record.method for record in records}) > 4
    assert len({record.amount.currency for record in records}) > 3
    assert 0.25 < tied / COUNT < 0.45
    assert all(str((NOON - SPAN).date()) <= record.created_at < "2026-01-01T12:00:00.000" for record in records)
