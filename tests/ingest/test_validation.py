"""Valid records are accepted; an invalid record is refused with its field and the reason."""

import json
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments.ingest.errors import InvalidRecord
from payments.ingest.fast_path import parse_canonical
from payments.ingest.validation import validate_record
from payments.models import Mode, SequenceType, Status
from tests.support.lines import MISSING, RECORD, line

pytestmark = pytest.mark.once

AMOUNT = "must be a decimal, as text, with at most 13 digits before the point and exactly 2 after it"
CURRENCY = "must be an ISO 4217 currency code"
TIME = (
    "must be a time (ISO 8601) with at most three fractional digits, such as 2018-03-20T13:28:37.123, "
    "in UTC or with Z or an offset"
)
URL = "must be an http or https URL of at most 2048 characters"
PAYMENT_ID = "must be `pt_` and 1 to 61 letters, digits, `_` or `-`"
METADATA = "must be a JSON object whose values are texts"
NULL = "must not be null"
UNKNOWN = "is not a field of a record; --ignore-unknown-fields skips it"
REDIRECT_URL = (
    "must be an absolute URL of at most 2048 characters, such as https://shop.example/ or myapp:paid, without the "
    "schemes javascript, data, vbscript, file, blob, filesystem"
)
REQUIRED = (
    *("id", "mode", "amount", "description", "status", "organizationId", "sequenceType", "metadata"),
    "createdAt",
)


def refusal(text: bytes) -> str:
    assert parse_canonical(text) is None
    with pytest.raises(InvalidRecord) as error:
        validate_record(text)
    return str(error.value)


def euros(value: Any) -> dict[str, Any]:
    return {"value": value, "currency": "EUR"}


def test_complete_record_is_accepted() -> None:
    assert validate_record(line()).record.id == "pt_1"


@pytest.mark.parametrize(
    "changes",
    [
        {"_links": {"self": {"href": "x"}}},
        {"_links": None, "resource": 7},
        {"resource": MISSING},
        *({key: MISSING} for key in ("amountNet", "amountRemaining", "method", "redirectUrl", "webhookUrl")),
        *({key: MISSING} for key in ("details", "expiresAt", "customerId")),
        *({"status": status} for status in Status.values),
        *({"mode": mode} for mode in Mode.values),
        *({"sequenceType": sequence_type} for sequence_type in SequenceType.values),
        *({"amount": euros(value)} for value in ("0.00", "0.01", "-1.00", "9999999999999.99")),
        *({"amount": {"value": "1000.00", "currency": currency}} for currency in ("JPY", "XCG", "ZWG", "XAD", "HRK")),
        *({"id": name} for name in ("pt_0", "pt_" + "z" * 61, "pt_A_b-C", "pt_-", "pt__")),
        *({"customerId": name} for name in ("ct_a-b", "ct__")),
        *({"method": method} for method in ("a", "_", "m" * 32, "klarna_2", "applePay", "sepa-debit", "IDEAL")),
        *({"redirectUrl": url} for url in ("http://localhost:8000", "https://[::1]/x?y=z#a", "https://x.example/ü")),
        *(
            {"redirectUrl": url}
            for url in ("myapp:", "myapp:paid", "com.shop.app://paid?id=7", "MAILTO:a@b.example")[1:]
        ),
        *({"organizationId": number} for number in ("1", str(2**63 - 1))),
        *(
            {"createdAt": time}
            for time in ("0001-01-01T00:00:00.000", "9999-12-31T23:59:59.999", "2024-02-29T00:00:00.000")
        ),
        *({"description": text} for text in ("", "\u2028", "😀", "x" * 10_000)),
        *({"metadata": metadata} for metadata in ({}, {"": ""}, {"a b": "\n"})),
        *({"details": details} for details in ({}, {"a": {"b": [1, None, True, "x"]}})),
        {"status": "open", "paidAt": MISSING},
    ],
)
def test_records_that_the_contract_allows_are_accepted(changes: dict[str, Any]) -> None:
    validate_record(line(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({key: MISSING}, f"{key}: is missing") for key in REQUIRED),
        *(({key: None}, f"{key}: {NULL}") for key in REQUIRED),
        ({"amount": {"value": "1.00"}}, "amount.currency: is missing"),
        ({"amountNet": {**euros("1.00"), "fee": "0.10"}}, f"amountNet.fee: {UNKNOWN}"),
        ({"profileId": "x"}, f"profileId: {UNKNOWN}"),
        *(
            ({"id": name}, f"id: {PAYMENT_ID}")
            for name in ("pt_", "tr_1", "PT_1", "pt_1\n", "pt_é", "pt_" + "z" * 62, 7)
        ),
        ({"customerId": "pt_1"}, "customerId: must be `ct_` and 1 to 61 letters, digits, `_` or `-`"),
        ({"mode": "Live"}, "mode: must be one of live, test; --map mode:VALUE=TO translates it"),
        (
            {"status": "paid"},
            f"status: must be one of {', '.join(Status.values)}; --map status:VALUE=TO translates it",
        ),
        (
            {"sequenceType": ""},
            "sequenceType: must be one of oneoff, first, recurring; --map sequenceType:VALUE=TO translates it",
        ),
        *(
            ({"amount": euros(value)}, f"amount.value: {AMOUNT}")
            for value in (
                "1",
                "1.0",
                "1.000",
                "1.234",
                ".50",
                "01.00",
                "+1.00",
                "1,00",
                "1e2",
                "NaN",
                "",
                "1.00\n",
                1.5,
                "\u0663.\u0660\u0660",
            )
        ),
        ({"amount": euros("10000000000000.00")}, f"amount.value: {AMOUNT}"),
        ({"amount": euros("-0.00")}, "amount.value: must be written 0.00"),
        *(
            ({"amountNet": {"value": "1.00", "currency": currency}}, f"amountNet.currency: {CURRENCY}")
            for currency in ("eur", "EU", "EUX", "EURO", "", 978)
        ),
        ({"amount": "10.00"}, "amount: must be an object with value and currency"),
        ({"description": 7}, "description: must be a text"),
        *(
            ({"method": method}, "method: must be a word of 1 to 32 letters, digits, `_` or `-`")
            for method in ("", "a b", "a.b", "é", "m" * 33)
        ),
        *(
            ({"redirectUrl": url}, f"redirectUrl: {REDIRECT_URL}")
            for url in (
                "",
                "shop",
                "//shop.example/",
                "https:",
                "1app:paid",
                *(
                    f"{scheme}:x"
                    for scheme in ("javascript", "JavaScript", "data", "vbscript", "file", "blob", "FILESYSTEM")
                ),
                "myapp:a b",
                "myapp:a\u00a0b",
                "myapp:a\u0085b",
                "myapp:" + "y" * 2048,
                "http://",
                "http://x y/",
                "http://[::1",
                "http://:80/",
            )
        ),
        *(
            ({"webhookUrl": url}, f"webhookUrl: {URL}")
            for url in ("http://x:99999/", "http://x:0/", "https://x/\n", "http://x/" + "y" * 2048)
        ),
        *(
            ({"organizationId": number}, "organizationId: must be a positive whole number, as text")
            for number in ("", "0", "-1", "01", "1.0", "abc", "99999999999999999999", 1)
        ),
        ({"organizationId": str(2**63)}, f"organizationId: must be at most {2**63 - 1}"),
        *(
            ({"createdAt": time}, f"createdAt: {TIME}")
            for time in (
                "2018-03-20",
                "2018-03-20T13:28:37.",
                "2018-03-20T13:28:37+24:00",
                "2018-03-20T13:28:37 +0100",
                "2018-03-20T13:28:37 UTC",
                "2018-03-20T24:00:00.000",
                "2018-03-20T23:59:60.000",
                "2018-03-20T13:28:37.123\n",
                "",
                1521552517123,
            )
        ),
        (
            {"createdAt": "2018-03-20T13:28:37.1234"},
            "createdAt: has more than three fractional digits: a digit would be lost",
        ),
        *(
            ({"expiresAt": time}, "expiresAt: is not a day of the calendar")
            for time in ("2018-02-29T00:00:00.000", "2018-13-01T00:00:00.000", "0000-01-01T00:00:00.000")
        ),
        ({"paidAt": MISSING}, "paidAt: is missing: a payment that succeeded must have it"),
        ({"metadata": [1]}, f"metadata: {METADATA}"),
        ({"metadata": "x"}, f"metadata: {METADATA}"),
        ({"metadata": {"a": 1}}, "metadata.a: must be a text"),
        ({"metadata": {"a": {}}}, "metadata.a: must be a text"),
        ({"metadata": {"a": ["b"]}}, "metadata.a: must be a text"),
        ({"metadata": {"a": None}}, "metadata.a: must be a text"),
        ({"details": [1]}, "details: must be a JSON object"),
        (
            {"details": {"cardCountryCode": "NLD"}},
            "details.cardCountryCode: must be an ISO 3166-1 alpha-2 country code",
        ),
        ({"details": {"cardHolder": 7}}, "details.cardHolder: must be a text"),
        ({"description": "a\0b"}, "description: must not contain the character NUL"),
        ({"metadata": {"a\0": "b"}}, "metadata.a: must not contain the character NUL"),
        ({"metadata": {"a": "\0"}}, "metadata.a: must not contain the character NUL"),
        ({"details": {"a": ["\0"]}}, "details.a: must not contain the character NUL"),
    ],
)
def test_invalid_field_is_named_with_the_reason(changes: dict[str, Any], message: str) -> None:
    assert refusal(line(**changes)) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is not JSON: Input data was truncated"),
        (b"null", "is not an object in JSON"),
        (b"[]", "is not an object in JSON"),
        (b'"pt_1"', "is not an object in JSON"),
        (line()[:-1], "is not JSON: Input data was truncated"),
        (line() + b"}", f"is not JSON: JSON is malformed: trailing characters (byte {len(line()) + 1})"),
        (line(id="pt_2").replace(b'"pt_2"', b"'pt_2'"), "is not JSON: JSON is malformed: invalid character (byte 6)"),
        (line(description="@").replace(b"@", b"\xff"), f"is not UTF-8 (byte {line(description='@').index(b'@')})"),
        (
            line(description="@").replace(b"@", b"\xed\xa0\x80"),
            f"is not UTF-8 (byte {line(description='@').index(b'@')})",
        ),
        (
            line(details={"a": "@"}).replace(b"@", b"\xff"),
            f"is not UTF-8 (byte {line(details={'a': '@'}).index(b'@')})",
        ),
        (line(details={"a": "@"}).replace(b'"@"', b"[" * 10_000 + b"]" * 10_000), "is nested too deeply"),
        (line(details={"a": "@"}).replace(b'"@"', b"1e400"), "details.a: is a number that is too large"),
        (line(details={"a": "@"}).replace(b'"@"', b"9" * 5000), "details.a: is a number that is too large"),
        (line().replace(b'"mode"', b'"id":"pt_2","mode"'), "id: occurs more than once"),
        (
            line().replace(b'"value":"10.00"', b'"value":"10.00","value":"99.00"', 1),
            "amount.value: occurs more than once",
        ),
        (line(metadata={"a": "b"}).replace(b'"a":"b"', b'"a":"b","a":"c"'), "metadata.a: occurs more than once"),
        (line(details={"a": 1}).replace(b'"a":1', b'"a":1,"a":1'), "details.a: occurs more than once"),
        (line(details={"a": "b"}).replace(b'"a":"b"', b'"a":"b","a":"b"'), "details.a: occurs more than once"),
        (line(details={"a": [{"b": "@"}]}).replace(b'"@"', b'1,"b":2'), "details.a.b: occurs more than once"),
        (line(details={"a": 1, "b": 1}).replace(b'"b":1', b'"b":1,"b":1'), "details.b: occurs more than once"),
    ],
)
def test_text_that_is_not_a_record_is_refused_with_the_reason(text: bytes, message: str) -> None:
    assert refusal(text) == message


@pytest.mark.parametrize("text", [b"NaN", b"Infinity", b"-Infinity", b"01", b"1.", b'"\\ud800"', b'"\\x"', b'"\x01"'])
def test_invalid_json_within_details_is_refused(text: bytes) -> None:
    assert refusal(line(details={"a": "@"}).replace(b'"@"', text)).startswith("is not JSON: JSON is malformed")


@pytest.mark.parametrize(("opening", "closing"), [(b'{"a":', b"}"), (b"[", b"]")])
def test_nesting_limit(opening: bytes, closing: bytes) -> None:
    def nested(levels: int) -> bytes:
        inner = levels - 2  # the record and its details
        return line(details={"a": "@"}).replace(b'"@"', opening * inner + b"1" + closing * inner)

    validate_record(nested(60))
    assert refusal(nested(61)) == "is nested too deeply"


def test_nesting_around_the_recursion_limit_of_python_is_refused() -> None:
    for levels in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit() + 10):
        text = line(details={"a": "@"}).replace(b'"@"', b"[" * levels + b"]" * levels)

        assert refusal(text) == "is nested too deeply"


def test_many_names_below_a_long_name_are_checked_in_linear_time() -> None:
    names = ",".join(f'"{number}":1' for number in range(100_000))
    text = line(details={"x" * 1_000_000: "@"}).replace(b'"@"', f'{{{names},"7":1}}'.encode())

    assert refusal(text) == f"details.{'x' * 72}…: occurs more than once"


@pytest.mark.parametrize(("name", "repeated"), [("x" * 80, "x" * 80), ("x" * 81, "x" * 80 + "…")])
def test_long_name_is_shortened_in_the_message(name: str, repeated: str) -> None:
    assert refusal(line(**{name: 1})) == f"{repeated}: {UNKNOWN}"


@pytest.mark.parametrize(
    ("name", "repeated"),
    [("a\nb.jsonl:7: id", r"a\nb.jsonl:7: id"), ("\x1b[2J", r"\x1b[2J"), ("\u202e", r"\u202e"), ("Größe", "Größe")],
)
def test_name_in_a_message_cannot_begin_a_line_or_control_a_terminal(name: str, repeated: str) -> None:
    assert refusal(line(**{name: 1})) == f"{repeated}: {UNKNOWN}"


@given(st.binary(max_size=60), st.integers(0, len(line())), st.integers(0, 20))
def test_damaged_record_is_accepted_or_refused(noise: bytes, position: int, length: int) -> None:
    text = line()[:position] + noise + line()[position + length :]

    with suppress(InvalidRecord):
        validate_record(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_details_are_accepted_or_refused(details: Any) -> None:
    text = json.dumps(RECORD | {"details": details}).encode()

    with suppress(InvalidRecord):
        validate_record(text)
