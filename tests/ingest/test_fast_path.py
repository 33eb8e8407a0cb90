"""The fast path accepts only records that the validation accepts, and returns the same rows."""

import re
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments.ingest.fast_path import parse_canonical
from payments.ingest.stored_rows import stored_row, stored_time
from payments.ingest.validation import validate_record
from payments.models import CUSTOMER_ID, METHOD, PAYMENT_ID, Mode, SequenceType, Status
from payments.record import VALUE
from tests.support.lines import MISSING, RECORD, compact, line

pytestmark = pytest.mark.once

CARD = {name: RECORD["details"][name] for name in ("cardCountryCode", "cardHolder", "cardLabel", "cardNumber")}
CANONICAL = [
    line(),
    line(details=CARD),
    line(
        details=CARD,
        _links={name: {"href": "https://a", "type": "x"} for name in ("self", "dashboard", "documentation")},
    ),
    line(details={"consumerName": "Zoë Baker", "consumerAccount": "NL91ABNA0417164300"}),
    line(status="open", **dict.fromkeys(("details", "expiresAt", "paidAt", "customerId", "method"), MISSING)),
    line(**dict.fromkeys(("amountNet", "amountRemaining", "redirectUrl", "webhookUrl"), MISSING)),
]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_record_takes_the_fast_path(text: bytes) -> None:
    stored = parse_canonical(text)

    assert stored is not None
    assert stored == stored_row(validate_record(text).record)


@pytest.mark.parametrize("time", ["2018-03-20T13:43:37.000", "2018-03-20T13:29:00.120", "0001-01-01T00:00:00.001"])
def test_time_is_stored_as_django_writes_it(time: str) -> None:
    assert stored_time(time) == str(datetime.fromisoformat(time))


@pytest.mark.parametrize("member", ["metadata", "details"])
@pytest.mark.parametrize(
    "texts", ['{"}', '{"a":"}', '{"a":"b","}', '{"a":"b","c":"}', '{"a":"b",}', '{"a"}', '{"a":"b"']
)
def test_texts_that_are_not_json_do_not_take_the_fast_path(member: str, texts: str) -> None:
    """Before Python 3.11.5, repeated groups that are possessive accept the first of them."""
    text = line(**{member: {"x": "y"}})
    assert parse_canonical(text) is not None

    assert parse_canonical(text.replace(b'{"x":"y"}', texts.encode())) is None


# Mostly valid records; the others are nearly valid.
PLAIN = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\'), max_size=12)
ODD = st.sampled_from(
    ["", "\x7f", "\x85", "\u2028", "\n", "\0", "\\", '"', "4242 4242 4242 4242", "1234", "NL", "null", ","]
)
MOMENTS = st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds"))
TIMES = MOMENTS | st.sampled_from(["2018-02-28T00:00:00.000", "2018-02-29T00:00:00.000", "0000-01-01T00:00:00.000"])
VALUES = st.from_regex(re.compile(VALUE)) | st.sampled_from(["0.00", "-0.00", "1.00\n"])
AMOUNTS = st.fixed_dictionaries({"value": VALUES, "currency": st.sampled_from(["EUR", "JPY", "USD", "XCG", "EUX"])})
URLS = st.from_regex(r"\Ahttps?://[a-z0-9.-]{1,12}([/?#][!-~]{0,12})?\Z") | st.sampled_from(
    ["https://a:0/", "https://a:1/", "https://u@a", "https://[::1]", "https://é", "https://" + "a" * 254, "http://a\n"]
)
CARDS = st.sampled_from(["4242 42XX XXXX 4242", "3782 82XX XXX0 034", "4242 4242 XXXX 4242", "4242424242424242"])
DETAILS = (
    st.fixed_dictionaries(
        {
            "cardCountryCode": st.sampled_from(["NL", "nl"]),
            "cardHolder": PLAIN,
            "cardLabel": PLAIN | ODD,
            "cardNumber": CARDS,
        }
    )
    | st.dictionaries(PLAIN | st.sampled_from(["cvc", "pin", "note", "cardNumber", "cardHolder"]), PLAIN | ODD | CARDS)
    | st.dictionaries(PLAIN, st.none() | st.integers())
)
LINKS = st.fixed_dictionaries(
    {name: st.fixed_dictionaries({"href": URLS, "type": PLAIN}) for name in ("self", "dashboard", "documentation")}
)
RECORDS = st.fixed_dictionaries(
    {
        "id": st.from_regex(re.compile(PAYMENT_ID)),
        "mode": st.sampled_from(Mode.values),
        "amount": AMOUNTS,
        "description": PLAIN | ODD,
        "status": st.sampled_from(Status.values),
        "organizationId": st.sampled_from(["1", "1001", "7" * 18, "9" * 18, "9" * 19]),
        "sequenceType": st.sampled_from(SequenceType.values),
        "metadata": st.dictionaries(PLAIN, PLAIN | ODD),
        "createdAt": TIMES,
    },
    optional={
        "amountNet": AMOUNTS,
        "amountRemaining": AMOUNTS,
        "method": st.from_regex(re.compile(METHOD)),
        "redirectUrl": URLS,
        "webhookUrl": URLS,
        "details": DETAILS,
        "expiresAt": TIMES,
        "paidAt": TIMES,
        "customerId": st.from_regex(re.compile(CUSTOMER_ID)),
        "_links": LINKS,
    },
)


@given(RECORDS)
def test_fast_path_returns_the_same_row_as_the_validation(members: dict[str, Any]) -> None:
    all_members = members | {"resource": "payment"}
    text = compact({key: all_members[key] for key in [*RECORD, "_links"] if key in all_members})

    if stored := parse_canonical(text):
        assert stored == stored_row(validate_record(text).record)


@given(st.sampled_from(CANONICAL), st.integers(0, len(line())), st.text("0129aAEXZ ,", min_size=1, max_size=4))
def test_fast_path_accepts_no_damaged_record(text: bytes, position: int, damage: str) -> None:
    damaged = text[:position] + damage.encode() + text[position + len(damage) :]

    if stored := parse_canonical(damaged):
        assert stored == stored_row(validate_record(damaged).record)
