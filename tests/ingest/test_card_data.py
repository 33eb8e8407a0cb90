"""Card data that must not be stored is refused (PCI DSS 3.3 and 3.4), and the message does not repeat it.

The card numbers are test numbers that the card brands publish.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from payments.ingest.cards.details import exposes_card_number, find_cached_kind, find_in_text, is_sensitive_name
from payments.ingest.errors import InvalidRecord
from payments.ingest.fast_path import parse_canonical
from payments.ingest.validation import validate_record
from tests.support.corpus import DIRECTORY
from tests.support.growth import LINEAR_MAX, growth
from tests.support.lines import line

pytestmark = pytest.mark.once

EXPOSED = [
    "4242424242424242",
    "4242 4242 4242 4242",
    "4242-4242-4242-4242",
    "4242.4242.4242.4242",
    "card 5555555555554444 was charged",
    "no.4111111111111111;",
    "x4111111111111111x",
    "378282246310005",
    "3782 822463 10005",
    "6011111111111117",
    "30569309025904",
    "4222222222222",
    "2223003122003222",
    "6304000000000000",
    "12345 4242 4242 4242 4242",
    "XXXX 4242 4242 4242",
    "4242 4242 4XXX 4242",
    "4242 42XX XXX4 4242",
    "424242******44242",
    "4242 4242 4242 XXXX",
    "4242•42••4•••4242",
    "4242 4242 4242 4242 123",
    "12-2026 4242 4242 4242 4242",
    "+4242424242424242",
    "4242  4242  4242  4242",
    "4242\t4242\t4242\t4242",
    "4242\u00a04242\u00a04242\u00a04242",
    "4242\u20134242\u20134242\u20134242",
    "4242_4242_4242_4242",
    "4242/4242/4242/4242",
    "\uff14\uff12\uff14\uff12" * 4,
    "#4242424242424242",
    "XXX4 2424 2424 2424 242",
    "tel. 5105 1051 0510 5100.",
    "979 2000 0000 0000 3",
    "000 111 000 4242 4242 4242 4242 000 111",
    "1111 " * 200 + "4242 4242 4242 4242",
    "order 1234 378282246310005",
    "4222221XX2222",
    "4242424242XXXXX4242",
    "424 242 424 2XX XXX 424",
    "+49 378282246310005",
    "6304000000000000000",
    "X6304000000000000000X",
    "*6304000XXXXXXXX0000*",
    "40-00-00-00-00-00-00-02",
    "DE66 4242 4242 4242 4242 00",
    "BE68539007547034-4242 4242 4242 XXXX",
    "\u0130A12 4242424242424242",
    "K\u013012 4242424242424242",
    "\u212aI12 4242424242424242",
    "SECUR\u0130TY 4242424242424242",
]
HARMLESS = [
    "4242 42XX XXXX 4242",
    "424242******4242",
    "•••• •••• •••• 4242",
    "XXXX-XXXX-XXXX-4242",
    "4242424242424243",
    "1234567890123456",
    "NL91 ABNA 0417 1643 00",
    "BE68539007547034",
    "BE41539007547035",
    "DE65 4242 4242 4242 4242 00",
    "DE89370400440532013000",
    "AZ21 NABZ 0000 0000 1370 1000 1944",
    "FR14 2004 1010 0505 0001 3M02 606",
    "+4917012345678",
    "2026-01-01T12:00:00.000",
    "order 4242",
    "Order #2026112100001",
    "Ref *2026112100001",
    "BOX2026112100001",
    "tx1234567890123456",
    "FR14 2004 1010 05XX XXXX XX26 06",
    "DE89 3704 0044 05XX XXXX XX",
    "4242 42XX XXXX 4242 12/26",
    "2026-01-01 2026-01-31",
    "BE25539007547035",
    "356938035643809",
    "+49 1701 2345 678",
    "+4242 4242 4242 424",
    "00000000-0000-0000-0000-000000000000",
    "4242 4242 XXXX",
    "XXXX XXXX XXXX XXXX XXXX XXXX 1234 5678",
    "*6304000XXXXXXXXX0000*",
    "8000000000123458",
    "9100000000123463",
    "2201 9325 1033 4179 1931",
    "+4242 4242 4242 424 10",
    "+4242 4242 4242 424 " + "0" * 22,
    "TR34 \u0130STANBUL KADIKOY",
    "",
]

REASON = "a card number must be masked (PCI DSS 3.4); --not-a-card details.MEMBER accepts other numbers"

CASE = re.compile(r'\{"why": "(.+?)", "details": (.+)\}')


class Case(NamedTuple):
    """One line of the corpus. The details stay as they are written there, for example with escapes."""

    why: str
    details: str

    def line(self, **changes: Any) -> bytes:
        """Return a line of an import with these details."""
        return line(details="@", **changes).replace(b'"@"', self.details.encode())


def read_cases(name: str) -> list[Case]:
    """Return the cases of a file: `refused` or `accepted`.

    :raises ValueError: a line is not a case
    """
    return [parse_case(text) for text in (DIRECTORY / "card_data" / f"{name}.jsonl").read_text().splitlines()]


def parse_case(text: str) -> Case:
    match = CASE.fullmatch(text)
    if match is None:
        raise ValueError(f"Not a case: {text}")
    return Case(*match.groups())


def of_corpus(name: str) -> pytest.MarkDecorator:
    """Run a test for each case of a file of the corpus."""
    cases = [pytest.param(case, id=f"{number} {case.why}") for number, case in enumerate(read_cases(name), start=1)]
    return pytest.mark.parametrize("case", cases)


def refusal(details: Any) -> str:
    text = line(details=details)
    assert parse_canonical(text) is None
    with pytest.raises(InvalidRecord) as error:
        validate_record(text)
    return str(error.value)


@of_corpus("refused")
def test_card_data_of_the_corpus_is_refused(case: Case) -> None:
    assert parse_canonical(case.line()) is None
    with pytest.raises(InvalidRecord, match="PCI DSS"):
        validate_record(case.line())


@of_corpus("accepted")
def test_harmless_details_of_the_corpus_are_accepted(case: Case) -> None:
    validate_record(case.line())


@pytest.mark.parametrize("text", EXPOSED)
def test_exposed_card_number_is_refused_anywhere_in_details(text: str) -> None:
    messages = [
        refusal({"note": text}),
        refusal({"a": {"b": [{"note": text}]}}),
        refusal({"list": ["x", text]}),
        refusal({text: "x"}),
        refusal({"a": {text: {}}}),
    ]

    assert messages[0] == f"details.note: {REASON}"
    assert all("card number" in message for message in messages)
    assert {character for message in messages for character in message if character.isdigit()} <= {"3", "4"}


@pytest.mark.parametrize("letter", ["\u0130", "\u0131", "\u017f", "\u212a"])
def test_card_number_is_refused_beside_letters_that_look_like_ascii(letter: str) -> None:
    """Python takes these letters for i, s and k if a pattern ignores case."""
    text = line(description=f"K{letter}12 4242424242424242")

    with pytest.raises(InvalidRecord, match=r"^description: a card number"):
        validate_record(text)


def test_security_code_in_the_turkish_alphabet_is_refused() -> None:
    assert refusal({"note": "SECUR\u0130TY CODE 123"}).startswith("details.note: a security code")


def test_exposed_card_number_is_refused_as_json_number() -> None:
    assert refusal({"note": 4242424242424242}) == f"details.note: {REASON}"


@pytest.mark.parametrize("text", HARMLESS)
def test_masked_and_other_numbers_are_accepted(text: str) -> None:
    validate_record(line(details={"note": text, "list": [text], text: "x"}))


@pytest.mark.parametrize(
    ("number", "is_accepted"),
    [
        ("4242 42XX XXXX 4242", True),
        ("XXXX XXXX XXXX 4242", True),
        ("3782 82XX XXX0 005", True),
        ("6304 00XX XXXX XXX0 000", True),
        ("4242424242424242", False),
        ("4242 4242 4242 4243", False),
        ("4242 424X XXXX 4242", True),
        ("4242 4242 XXXX 4242", True),
        ("4242 4242 4XXX 4242", False),
        ("4242 42XX XXX4 4242", False),
        ("4242", False),
        ("", False),
    ],
)
def test_card_number_field_must_be_masked_in_groups_of_four(number: str, is_accepted: bool) -> None:
    details = {"cardNumber": number}

    if is_accepted:
        validate_record(line(details=details))
    else:
        assert refusal(details).startswith("details.cardNumber: must be masked, in groups of four")


@pytest.mark.parametrize(
    "name",
    [
        "cvc",
        "CVV",
        "cvv2",
        "card_cvc",
        "cardCvv",
        "securityCode",
        "card-security-code",
        "CID",
        "pin",
        "track2",
        "trackData",
        "cvvCode",
        "cvc2Number",
        "CVV/CVC",
        "card_cvv_number",
        "securityNumber",
        "cvc" + "-" * 62,
    ],
)
@pytest.mark.parametrize("value", ["123", 123, "XXX", ["9"], {"value": "1"}])
def test_security_code_pin_and_track_are_refused(name: str, value: Any) -> None:
    message = refusal({"inner": {name: value}})

    assert message.endswith("a security code, PIN or track must not be stored (PCI DSS 3.3)")
    assert "123" not in message


@pytest.mark.parametrize(
    "details",
    [
        {"response": '{"cvv":{"value":"123"}}'},
        {"note": "cvv code is 123"},
        {"cvvx": "123.00"},
        {"cvvInfo": {"987": True}},
        *(
            {name: "123"}
            for name in (
                *("セキュリティーコード", "ПИН", "pinkod", "pinNummer", "mPIN", "PIN-Blk", "Geheimnummer", "trackII"),
                *("codul de securitate", "проверочный код", "sicherheitsNr", "securityNo", "security_num", "cvNumber"),
            )
        ),
    ],
)
def test_other_spellings_of_security_codes_are_refused(details: Any) -> None:
    message = refusal(details)

    assert message.endswith("a security code, PIN or track must not be stored (PCI DSS 3.3)")
    assert "987" not in message


@pytest.mark.parametrize(
    "text",
    [
        line(details={"cvv=123": 1}).replace(b'"cvv=123":1', b'"cvv=123":1,"cvv=123":2'),
        line(**{"CVV: 123": "x"}),
        line(metadata={"security code 123": 5}),
    ],
)
def test_security_code_in_a_name_is_not_repeated(text: bytes) -> None:
    with pytest.raises(InvalidRecord) as error:
        validate_record(text)

    assert "a name that may contain card data: " in str(error.value)
    assert "123" not in str(error.value)


@pytest.mark.parametrize(
    "details",
    [
        {"cvc": None},
        {"cvc": ""},
        {"cvcCheck": "pass"},
        {"pinned": "yes"},
        {"cvc": {}},
        {"cvc": True},
        {"cvc": False},
        {"cvv0": "x"},
        {"pin9": "x"},
        {"x" * 65: "x"},
    ],
)
def test_empty_and_similarly_named_fields_are_accepted(details: Any) -> None:
    validate_record(line(details=details))


@pytest.mark.parametrize(("characters", "cached"), [(64, 1), (65, 0)])
def test_long_names_are_not_cached(characters: int, cached: int) -> None:
    find_cached_kind.cache_clear()

    is_sensitive_name("x" * characters)

    assert find_cached_kind.cache_info().currsize == cached


@pytest.mark.parametrize(
    "group", ["12 ", "222 ", "2222 ", "000 ", "9", "X", "AB12 ", "+222", "BE12", "BE12 ", "BE12-", "RF12 B"]
)
def test_search_cost_is_linear_in_the_text(group: str) -> None:
    assert growth(lambda factor: partial(exposes_card_number, group * (2_000 * factor))) < LINEAR_MAX


@pytest.mark.parametrize("group", ["cvvcvv1", "pin: 12 ", "social security ", "cod de ", "<a", "&#0", "\u0301"])
@pytest.mark.parametrize("search", [find_in_text, is_sensitive_name])
def test_search_cost_of_security_codes_is_linear(search: Callable[[str], object], group: str) -> None:
    assert growth(lambda factor: partial(search, "123 " + group * (200 * factor))) < LINEAR_MAX


def test_duplicate_name_with_card_number_is_not_repeated() -> None:
    text = line(details={"4242424242424242": 1}).replace(b":1}", b':1,"4242424242424242":2}')

    with pytest.raises(InvalidRecord) as error:
        validate_record(text)

    assert "4242" not in str(error.value)
