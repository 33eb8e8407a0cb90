"""A canary card, put everywhere: what must not be stored is refused, and its digits come out nowhere."""

import json
import logging
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.core.management import CommandError, call_command

from payments.export import export_payments
from payments.ingest.validation import read_record
from payments.models import Organization, Payment
from tests.support.lines import RECORD, line

pytestmark = pytest.mark.django_db

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
    "5555 5555 XXXX 4444",
    f"%B{NUMBER}^BAKER/A^29121010000000000000?",
    f";{NUMBER}=29121010000000000000?",
]

# A fault that is told by the decoder, whose words hold what was given, or end early where that looks like their end.
TRICKS = [f"{NUMBER} - at `$", f"{NUMBER}` - at `$.mode`", f"a` - at `${NUMBER}", f"{NUMBER}\n", f"'{NUMBER}'"]


def changed(**members: Any) -> bytes:
    return json.dumps(RECORD | members).encode()


def in_details() -> Iterator[bytes]:
    """Yield records that hold it where nothing of it may be stored."""
    for number in [*NUMBERS, *TRICKS]:
        yield from (changed(details={name: number}) for name in ("cardNumber", "cardHolder", "cardLabel", "note"))
        yield changed(details={"cardCountryCode": number})
        yield changed(details={"a": [{"b": ["c", number]}]})
        yield changed(details={number: "x"})
        yield changed(details={"a": {number: {"cardHolder": 1}}})
        yield changed(details=number)
        yield changed(details=[number])
    yield changed(details={"cardNumber": int(NUMBER)})
    yield changed(details={"note": int(NUMBER)})
    yield changed(details={"note": -int(NUMBER)})
    for name in ("cvc", "CVV2", "card_security_code", "pin", "track2", "cid"):
        yield from (changed(details={"a": {name: code}}) for code in (CODE, int(CODE), [CODE], {CODE: CODE}))


def elsewhere() -> Iterator[bytes]:
    """Yield records that hold it in a place where it is wrong for another reason."""
    for number in [*NUMBERS, *TRICKS]:
        yield changed(**{number: 1})
        yield changed(amount={number: 1})
        yield changed(amount={**RECORD["amount"], number: 1})
        yield changed(amount={"value": number, "currency": "EUR"})
        yield changed(amount={"value": "1.00", "currency": number})
        yield changed(metadata={"a": {number: number}})
        yield changed(metadata={number: 1})
        yield changed(metadata={f"{number}\0": "x"})
        yield changed(_links={f"{number}\0": "x"})
        for name in sorted(set(RECORD) - {"resource", "description", "metadata", "method"}):
            yield changed(**{name: number})
    for name in sorted(set(RECORD) - {"resource"}):
        yield changed(**{name: int(NUMBER)})
        yield changed(**{name: [NUMBER]})
        yield changed(**{name: {"a": {NUMBER: int(NUMBER)}}})
        yield changed(description="\0", **({} if name == "description" else {name: NUMBER}))
    yield changed(details={"5555": {"5555": {"5555": {"4444": "\0"}}}})
    yield changed(details={"5555\0 5555 5555\0 4444": "x"})
    yield changed(metadata="@").replace(b'"@"', f'{{"{NUMBER}":"a","{NUMBER}":"b"}}'.encode())
    yield changed(details={"a": "@"}).replace(b'"@"', f"{NUMBER}e400".encode())
    yield changed(details={"a": "@"}).replace(b'"@"', (NUMBER * 50).encode())


def damaged() -> Iterator[bytes]:
    """Yield what is no record, and not even JSON."""
    whole = changed(description=NUMBER, metadata={NUMBER: NUMBER})
    yield from (whole[:end] for end in range(1, len(whole), 7))
    yield from (whole[:place] + b"\xff" + whole[place:] for place in range(0, len(whole), 23))
    yield from (whole[:place] + b"\0" + whole[place:] for place in range(0, len(whole), 23))
    yield from (NUMBER.encode(), f'"{NUMBER}"'.encode(), f'["{NUMBER}"]'.encode(), f'{{"{NUMBER}":}}'.encode())
    yield f"id,number\n1,{NUMBER}\n".encode()


def allowed() -> Iterator[bytes]:
    """Yield records that hold it where a merchant may write anything."""
    yield line(description=NUMBER)
    yield line(metadata={NUMBER: NUMBER})
    yield line(method=NUMBER, customerId=f"ct_{NUMBER}")
    yield line(redirectUrl=f"https://shop.example/{NUMBER}")


@pytest.mark.parametrize("records", [in_details, elsewhere, damaged])
def test_what_shows_a_card_is_refused_and_repeated_nowhere(
    organization: Organization,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    records: Callable[[], Iterator[bytes]],
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, logger="factory")  # it logs every step
    file = tmp_path / "payments"
    for record in records():
        caplog.clear()
        file.write_bytes(record)

        with pytest.raises(CommandError) as error:
            call_command("import_payments", str(file))

        written = capfd.readouterr()
        told = "".join([written.out, written.err, *traceback.format_exception(error.value), caplog.text])
        readable = unicodedata.normalize("NFKC", told.replace(str(file), ""))
        assert not [canary for canary in CANARIES if canary in readable], record
        assert not Payment.objects.exists(), record


def test_where_anything_may_be_written_it_is_stored_as_it_was_written(
    organization: Organization, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "payments"
    for record in allowed():
        file.write_bytes(record)

        call_command("import_payments", str(file))

        assert "5555" not in capfd.readouterr().err.replace(str(file), "")
        assert list(export_payments(Payment.objects.all())) == [record + b"\n"]


@pytest.mark.parametrize("members", [{"mode": NUMBER}, {NUMBER: 1}])
def test_the_decoders_own_words_would_be_found_out(members: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        read_record(changed(**members))

    assert NUMBER in str(error.value)
