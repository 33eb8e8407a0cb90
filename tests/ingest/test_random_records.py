"""Records with random letters of all of Unicode are imported, or refused in a message that repeats no number."""

import json
import random
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from payments.ingest import import_payments
from payments.ingest.errors import InvalidRecord
from payments.ingest.formats.sources import Location
from payments.models import Organization, Payment
from tests.support.lines import record, source
from tests.support.scale import SEED, report, times

pytestmark = pytest.mark.django_db

RECORDS = times(300, long=150_000)
PART = 2_000  # records of a file

NUMBERS = ("4242424242424242", "5555555555554444", "378282246310005", "6011111111111117", "30569309025904")
# More than 12 digits in any script, also behind separators. A message may name limits and lines, which are shorter.
LONG_NUMBER = re.compile(r"\d(?:[^\w,;:]{0,3}\d){12,}")
ESCAPE = re.compile(r"\\(?:x..|u.{4}|U.{8})")

# Letters whose upper or lower case is ASCII, or has another length; marks, format characters, bidi overrides, spaces.
ODD = (
    "\u0130\u0131\u017f\u212a\u00df\u0149\u0390\ufb03\u01c5\u03c2\u03a3\u0345\u0301\u200b\u200d\u2060\ufeff\u202e\u2066"
    "\u00ad\u180e\u3000\u2028\x1b\x85\x9b\x7f\n\t\0\"\\'%&#;=|"
)
ZEROS = [chr(code) for code in range(0x110000) if unicodedata.decimal(chr(code), None) == 0]


def any_letter(rng: random.Random) -> str:
    return chr(rng.randrange(0x110000))  # also a half of a surrogate pair, which JSON can write as an escape


def in_a_script(rng: random.Random, digits: str) -> str:
    zero = ord(rng.choice(ZEROS))
    return "".join(chr(zero + int(digit)) if "0" <= digit <= "9" else digit for digit in digits)


def card(rng: random.Random) -> str:
    separator = rng.choice(["", " ", "-", ".", rng.choice(ODD), any_letter(rng)])
    number = rng.choice(NUMBERS)
    text = separator.join(number[start : start + 4] for start in range(0, len(number), 4))
    return in_a_script(rng, text) if rng.random() < 0.4 else text


def account(rng: random.Random) -> str:
    letters = "".join(rng.choice("NLTRDEk\u0130\u212a\u0131\u017f" + any_letter(rng)) for _ in range(2))
    return f"{letters}{rng.randrange(100):02}{rng.choice(['', ' '])}{card(rng)}"


PIECES: list[Callable[[random.Random], str]] = [
    any_letter,
    lambda rng: rng.choice(ODD),
    lambda rng: "".join(rng.choice(ODD + "aZ09 ") for _ in range(rng.randrange(9))),
    lambda rng: in_a_script(rng, str(rng.randrange(10**6))),
    lambda rng: rng.choice(["cvv", "pin", "SECURİTY CODE 123", "track2", "&#52;", "%34", "X" * 6, "null", "1e9999"]),
    card,
    account,
]


def text(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES)(rng) for _ in range(rng.randrange(1, 5)))


def value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(8 if depth < 4 else 5)
    if kind < 4:
        return text(rng)
    if kind == 4:
        return rng.choice([None, True, rng.random(), rng.randrange(10**18), int(rng.choice(NUMBERS))])
    if kind == 5:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {text(rng): value(rng, depth + 1) for _ in range(rng.randrange(4))}


CHANGES: list[Callable[[random.Random], dict[str, Any]]] = [
    lambda rng: {"description": text(rng)},
    lambda rng: {"metadata": {text(rng): text(rng) for _ in range(rng.randrange(4))}},
    lambda rng: {"details": {text(rng): value(rng) for _ in range(rng.randrange(4))}},
    lambda rng: {"redirectUrl": f"{rng.choice(['https://', 'app:', ''])}{text(rng)}"},
    lambda rng: {"webhookUrl": f"https://{text(rng)}"},
    lambda rng: {rng.choice([*record(), text(rng)]): value(rng)},
    lambda rng: {"details": {"cardNumber": text(rng), "cardHolder": text(rng)}},
    lambda rng: {"amount": {"value": text(rng), "currency": text(rng)}},
    lambda rng: {rng.choice(["createdAt", "paidAt"]): in_a_script(rng, "2018-03-20T13:28:37.123")},
]


def random_line(rng: random.Random, number: int) -> bytes:
    members = record(id=f"pt_{number}")
    for _ in range(rng.randrange(1, 3)):
        members |= rng.choice(CHANGES)(rng)
    separators = rng.choice([(",", ":"), (", ", ": ")])
    encoded = json.dumps(members, ensure_ascii=rng.random() < 0.3, separators=separators)
    return encoded.encode(errors="surrogatepass")  # bytes that are not UTF-8


def test_random_record_is_imported_or_refused_without_its_numbers(
    organization: Organization, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(SEED)  # noqa: S311  reproducible, not for security
    messages: list[str] = []
    read = 0

    def on_refused(location: Location, invalid: InvalidRecord) -> None:
        messages.extend(map(location.describe, invalid.reported))

    for first in range(0, RECORDS, PART):
        numbers = range(first, min(first + PART, RECORDS))
        content = b"\n".join(random_line(rng, number) for number in numbers)
        read += import_payments([source(content, "f")], on_refused=on_refused, keep_going=True).read

    assert read == RECORDS
    assert [message for message in messages if "cannot be read" in message or not message.isprintable()] == []
    assert [message for message in messages if LONG_NUMBER.search(ESCAPE.sub("", message))] == []
    assert caplog.records == []
    assert RECORDS // 10 < Payment.objects.count() < RECORDS
    report(f"random records: {RECORDS}, imported {Payment.objects.count()}, SEED={SEED}")
