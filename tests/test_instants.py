"""The forms of an instant in filters and imports, and the pattern that describes them in the OpenAPI document."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import NamedTuple
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.api.openapi import openapi_document
from payments.ingest.validation import validate_record
from payments.listing.filters import FILTERS
from payments.record import parse_instant, record_time
from tests.support.corpus import DIRECTORY
from tests.support.lines import line
from tests.support.scale import examples

pytestmark = pytest.mark.once

PARAMETERS = openapi_document()["paths"]["/v2/payments"]["get"]["parameters"]
[PATTERN] = {item["schema"]["pattern"] for item in PARAMETERS if item["name"].startswith(("createdAt[", "paidAt["))}

ZERO = datetime(1, 1, 1, tzinfo=UTC)


class Written(NamedTuple):
    """An instant as a client writes it, and its exact number of microseconds."""

    text: str
    microseconds: Fraction


@st.composite
def written_instants(draw: st.DrawFn, *, digits_max: int = 12) -> Written:
    seconds = draw(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))).replace(microsecond=0)  # noqa: DTZ001
    digits = draw(st.text("019", max_size=digits_max))
    minutes = draw(st.none() | st.integers(-23 * 60 - 59, 23 * 60 + 59))
    zone = timezone(timedelta(minutes=minutes or 0))
    offset = f"{seconds.replace(tzinfo=zone):%z}"
    zones = ["", "Z", "z"] if minutes is None else [offset, f"{offset[:3]}:{offset[3:]}"]
    zones += [offset[:3]] if offset.endswith("00") and minutes is not None else []
    clock = f"{seconds:%H:%M:%S}{draw(st.sampled_from('.,'))}{digits}" if digits else f"{seconds:%H:%M:%S}"
    if clock.endswith(":00") and draw(st.booleans()):
        clock = clock[:5]
    text = (
        f"{seconds:%Y}".zfill(4)
        + f"-{seconds:%m-%d}{draw(st.sampled_from('Tt '))}{clock}{draw(st.sampled_from(zones))}"
    )
    whole = (seconds.replace(tzinfo=zone) - ZERO) // timedelta(microseconds=1)
    return Written(text, whole + Fraction(int(digits or 0), 10 ** len(digits)) * 1_000_000)


@given(written_instants())
@settings(max_examples=examples(25, long=2_000))
def test_bound_is_rounded_to_the_side_that_selects_the_same_payments(written: Written) -> None:
    below, above = written.microseconds // 1_000, -(-written.microseconds // 1_000)
    bounds = {"gte": above, "gt": below, "lte": below, "lt": above}

    values = {bound: FILTERS[f"createdAt[{bound}]"].parse(written.text) for bound in bounds}

    assert values == {bound: (ZERO + timedelta(milliseconds=number),) for bound, number in bounds.items()}
    assert re.search(PATTERN, written.text)


@given(written_instants(), written_instants())
@settings(max_examples=examples(25, long=2_000))
def test_instants_compare_as_their_times(one: Written, other: Written) -> None:
    one_instant, other_instant = parse_instant(one.text), parse_instant(other.text)

    assert (one_instant < other_instant) == (one.microseconds < other.microseconds)
    assert (one_instant == other_instant) == (one.microseconds == other.microseconds)


@given(written_instants(digits_max=3))
@settings(max_examples=examples(25, long=2_000))
def test_import_stores_the_instant_of_any_form(written: Written) -> None:
    expected = record_time(ZERO + timedelta(microseconds=int(written.microseconds)))

    assert validate_record(line(createdAt=written.text)).record.created_at == expected


@pytest.mark.parametrize("extension", ["(?", r"\x", r"\u", r"\p", r"\d", r"\A", r"\Z"])
def test_pattern_of_times_has_no_extension_of_one_language(extension: str) -> None:
    assert extension not in PATTERN


def test_pattern_has_all_times_that_the_api_accepts() -> None:
    cases = [json.loads(text) for text in (DIRECTORY / "filters.jsonl").read_text().splitlines()]
    query = re.compile(r"GET /v2/payments\?(?:created|paid)At\[[a-z]+\]=([^&]*)")
    accepted = [match[1] for case in cases if case["status"] == 200 and (match := query.fullmatch(case["send"]))]

    assert len(accepted) > 50
    assert [text for text in map(unquote, accepted) if not re.search(PATTERN, text)] == []
