"""Card data that must not be stored is refused in every field, and its digits appear in no message or log."""

import json
import logging
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from django.core.management import CommandError, call_command

from payments.models import Organization, Payment
from tests.support.lines import CSV_CELLS, RECORD, export_payments, line

pytestmark = [pytest.mark.django_db, pytest.mark.once]

NUMBER = "5555555555554444"
GROUPS = ("5555", "5555", "5555", "4444")
CODE = "7391"
CANARIES = ("5555", "4444", CODE)

NUMBERS = [
    NUMBER,
    *(separator.join(GROUPS) for separator in (" ", "-", ".", "_", "/", "  ", "\u00a0", "\u2013", "\t")),
    "\uff15" * 12 + "\uff14" * 4,
    f"paid with {NUMBER}.",
    f"+{NUMBER}",
    f"x{NUMBER}x",
    "5555 5555 55XX 4444",
    f"%B{NUMBER}^BAKER/A^29121010000000000000?",
    f";{NUMBER}=29121010000000000000?",
]

# Values that would spoil the decoder's message, which may repeat them.
TRICKS = [f"{NUMBER} - at `$", f"{NUMBER}` - at `$.mode`", f"a` - at `${NUMBER}", f"{NUMBER}\n", f"'{NUMBER}'"]


# In other fields than `details`, the form of a number matters less.
SOME_NUMBERS = [*NUMBERS[::4], *TRICKS]


def altered(**members: Any) -> bytes:
    return json.dumps(RECORD | members).encode()


def in_details() -> Iterator[bytes]:
    """Yield records with card data in `details`, where it must not be stored."""
    for number in [*NUMBERS, *TRICKS]:
        yield from (altered(details={name: number}) for name in ("cardNumber", "cardHolder", "cardLabel", "note"))
        yield altered(details={"cardCountryCode": number})
        yield altered(details={"a": [{"b": ["c", number]}]})
        yield altered(details={number: "x"})
        yield altered(details={"a": {number: {"cardHolder": 1}}})
        yield altered(details=number)
        yield altered(details=[number])
    yield altered(details={"cardNumber": int(NUMBER)})
    yield altered(details={"note": int(NUMBER)})
    yield altered(details={"note": -int(NUMBER)})
    for name in ("cvc", "CVV2", "card_security_code", "pin", "track2", "cid", "cc_cvv", "Pr\u00fcfziffer"):
        yield from (
            altered(details={"a": {name: code}})
            for code in (CODE, int(CODE), [CODE], {CODE: CODE}, {CODE: {CODE: NUMBER}})
        )
        yield altered(details={name: "@"}).replace(b'"@"', f'{{"{CODE}":1,"{CODE}":2}}'.encode())
        yield altered(details={name: {CODE: "\0", f"{CODE}{'x' * 2000}": "x" * 20_000}})
    yield altered(details={f"cvv: {CODE}": {"x": NUMBER}})


def elsewhere() -> Iterator[bytes]:
    """Yield records with card data in other fields, which are invalid for another reason."""
    for number in SOME_NUMBERS:
        yield altered(**{number: 1})
        yield altered(amount={number: 1})
        yield altered(amount={**RECORD["amount"], number: 1})
        yield altered(amount={"value": number, "currency": "EUR"})
        yield altered(amount={"value": "1.00", "currency": number})
        yield altered(metadata={"a": {number: number}})
        yield altered(metadata={number: 1})
        yield altered(metadata={f"{number}\0": "x"})
        yield altered(_links={f"{number}\0": "x"})
        for name in sorted(set(RECORD) - {"resource", "description", "metadata", "method"}):
            yield altered(**{name: number})
    for name in sorted(set(RECORD) - {"resource"}):
        yield altered(**{name: int(NUMBER)})
        yield altered(**{name: [NUMBER]})
        yield altered(**{name: {"a": {NUMBER: int(NUMBER)}}})
        yield altered(description="\0", **({} if name == "description" else {name: NUMBER}))
    yield altered(details={"5555": {"5555": {"5555": {"4444": "\0"}}}})
    yield altered(details={"5555\0 5555 5555\0 4444": "x"})
    yield altered(metadata="@").replace(b'"@"', f'{{"{NUMBER}":"a","{NUMBER}":"b"}}'.encode())
    yield altered(details={"a": "@"}).replace(b'"@"', f"{NUMBER}e400".encode())
    yield altered(details={"a": "@"}).replace(b'"@"', (NUMBER * 50).encode())


def damaged() -> Iterator[bytes]:
    """Yield texts that are not records; most are not even JSON."""
    text = altered(description=NUMBER, metadata={NUMBER: NUMBER})
    yield from (text[:end] for end in range(1, len(text), 7))
    yield from (text[:index] + b"\xff" + text[index:] for index in range(0, len(text), 23))
    yield from (text[:index] + b"\0" + text[index:] for index in range(0, len(text), 23))
    yield from (NUMBER.encode(), f'"{NUMBER}"'.encode(), f'["{NUMBER}"]'.encode(), f'{{"{NUMBER}":}}'.encode())
    yield f"id,number\n1,{NUMBER}\n".encode()


def csv_file(*columns: tuple[str, str], separator: str = ",", row_end: str = "") -> bytes:
    """Return a CSV file of one row, with more columns: their names and cells."""
    more = dict(columns)
    names, cells = [*CSV_CELLS, *more], [*(CSV_CELLS | more).values()]
    return "\n".join(separator.join(map(quoted, row)) for row in (names, cells)).encode() + row_end.encode()


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def in_csv() -> Iterator[bytes]:
    """Yield CSV files with card data in cells, names and damaged rows."""
    for number in SOME_NUMBERS:
        yield csv_file((number, "1"))
        yield csv_file(("a", "1"), (number, NUMBER), separator=";")
        yield csv_file((f"details.{number}", "1"))
        yield csv_file((f"details.a.{number}", "\0"))
        yield csv_file((f"amount.{number}", "1"), (f"{number}.", "1"))
        yield csv_file((f"metadata.{number}\0", "1"))
        yield from (csv_file((f"details.{name}", number)) for name in ("cardNumber", "cardHolder", "note"))
        yield csv_file(("details", json.dumps({"note": [number]})))
        yield csv_file(("details", json.dumps({"note": number})[:-1]))
        yield csv_file(("metadata", json.dumps({number: 1})))
        yield csv_file(("metadata", number))
        yield csv_file(("description", "Tea"), row_end=f",{quoted(number)}")
        yield csv_file(("description", "Tea"), row_end=f'"{number}')
        yield csv_file(("description", "Tea"), row_end=f'\n"{number}')
        yield csv_file(("description", "@")).replace(b"@", number.encode() + b"\xff")
        yield from (csv_file((name, number)) for name in CSV_CELLS if name != "description")
    yield csv_file(*((f"{group}{'.' * index}", "1") for index, group in enumerate(GROUPS)))
    yield csv_file(*zip(("details.a", "details.b", "details.c", "details.d"), GROUPS, strict=True))
    yield csv_file(("details.cvc", CODE))
    yield csv_file(("details.name", "cvc"), ("details.value", CODE))
    yield csv_file(("details", '{"card": {"cvc": 7391}}'))


def in_free_texts() -> Iterator[bytes]:
    """Yield records with a clear card number in fields in which a merchant may write any text."""
    numbers = [NUMBER, " ".join(GROUPS), "-".join(GROUPS), "3782 822463 10005", f"paid with {NUMBER}."]
    for number in numbers:
        yield line(description=number)
        yield line(metadata={"note": number})
        yield line(metadata={number: "note"})
    for number in (NUMBER, "%20".join(GROUPS), "+".join(GROUPS)):
        yield line(redirectUrl=f"https://shop.example/?card={number}")
        yield line(webhookUrl=f"https://shop.example/{number}/")


def allowed() -> Iterator[bytes]:
    """Yield records with digits that may be another number, in fields in which a merchant may write any text."""
    for text in ("4222222222222", f"tx{NUMBER}", f"{NUMBER}0000", "5555555555554445", "8955555555555544449"):
        yield line(description=text)
        yield line(metadata={text: text})
        yield line(redirectUrl=f"https://shop.example/{text}")
    yield line(method=NUMBER, customerId=f"ct_{NUMBER}")


@pytest.mark.parametrize("records", [in_details, in_free_texts, elsewhere, damaged, in_csv])
def test_exposed_card_data_is_refused_and_not_repeated(
    organization: Organization,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    records: Callable[[], Iterator[bytes]],
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, logger="factory")  # factory_boy logs each value
    file = tmp_path / "payments"
    for record in records():
        caplog.clear()
        file.write_bytes(record)

        with pytest.raises(CommandError) as error:
            call_command("import_payments", str(file))

        output = capfd.readouterr()
        messages = "".join([output.out, output.err, *traceback.format_exception(error.value), caplog.text])
        readable = unicodedata.normalize("NFKC", messages.replace(str(file), ""))
        assert not [canary for canary in CANARIES if canary in readable], record
        assert not Payment.objects.exists(), record


@pytest.mark.parametrize(("records", "options"), [(allowed, []), (in_free_texts, ["--trust-texts"])])
def test_free_text_fields_are_stored_unchanged(
    organization: Organization,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    records: Callable[[], Iterator[bytes]],
    options: list[str],
) -> None:
    file = tmp_path / "payments"
    for record in records():
        file.write_bytes(record)

        call_command("import_payments", *options, str(file))

        assert "5555" not in capfd.readouterr().err.replace(str(file), "")
        assert list(export_payments(Payment.objects.all())) == [record + b"\n"]


def test_message_of_the_decoder_alone_would_repeat_card_data() -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.json.decode(json.dumps(NUMBER), type=Literal["live", "test"])

    assert NUMBER in str(error.value)
