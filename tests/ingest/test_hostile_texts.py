"""The cost of a record is linear in its length, also if a field contains a hostile text."""

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from payments.ingest.batches import parse
from payments.ingest.formats.sources import Location, RawRecord
from tests.support.growth import FACTOR, LINEAR_MAX, growth, seconds
from tests.support.lines import line
from tests.support.scale import report, times

pytestmark = pytest.mark.once

# In a long run, the longest text has one million characters.
CHARACTERS = times(500, long=62_500)

# Texts that are repeated to the length. Each is the worst case of a step: a pattern, a normal form, a decoder.
KINDS = {
    "letters": "a",
    "digits": "4",
    "digits and spaces": "4 ",
    "pairs": "42 ",
    "groups of three": "424 ",
    "groups of four": "4242 ",
    "digits and dots": "4.",
    "digits and zero-width spaces": "4\u200b",
    "masks": "X 4",
    "masked groups": "4XXX ",
    "combining marks": "\u0301\u0316",
    "a letter and combining marks": "a\u0316\u0301\u0315",
    "Hangul letters": "\u1100\u1161",
    "a character with a long form": "\ufdfa",
    "characters outside of the first plane": "\U0001f600",
    "references": "&#",
    "references with digits": "&#5",
    "percent signs": "%4",
    "percent-encoded characters": "%C2",
    "account numbers": "NL91 ",
    "account numbers without spaces": "AB12",
    "parts of a UUID": "12345678-1234-",
    "plus signs": "+4",
    "names of a security code": "cvv ",
    "exponents": "1.1e1",
    "exponents behind many digits": "123456789012e99 ",
    "colons": "http://a:",
    "question marks": "?",
}

FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "description": lambda text: {"description": text},
    "redirectUrl": lambda text: {"redirectUrl": f"https://shop.example/{text}"},
    "the host of a URL": lambda text: {"webhookUrl": f"https://{text}"},
    "metadata": lambda text: {"metadata": {"note": text, text: "note"}},
    "details": lambda text: {"details": {"note": text, "list": [text]}},
    "a name in details": lambda text: {"details": {text: "note"}},
    "cardNumber": lambda text: {"details": {"cardNumber": text}},
    "id": lambda text: {"id": f"pt_{text}"},
    "createdAt": lambda text: {"createdAt": text},
    "amount": lambda text: {"amount": {"value": text, "currency": "EUR"}},
    "an unknown field": lambda text: {text: 1},
}


QUICK_FIELDS = {"description", "metadata", "details"}


@pytest.mark.parametrize(
    "field", [pytest.param(field, marks=() if field in QUICK_FIELDS else pytest.mark.extended) for field in FIELDS]
)
def test_cost_of_a_record_is_linear_in_a_hostile_text(field: str) -> None:
    def work(factor: int, kind: str) -> Callable[[], object]:
        text = (kind * (CHARACTERS * factor))[: CHARACTERS * factor]
        return partial(parse, RawRecord(Location("f", 1), line(**FIELDS[field](text))))

    ratios = {name: growth(partial(work, kind=kind)) for name, kind in KINDS.items()}

    slowest = max(KINDS, key=lambda name: seconds(work(FACTOR, KINDS[name])))
    report(f"{field}: {seconds(work(FACTOR, KINDS[slowest])):.2f} s for {CHARACTERS * FACTOR} characters of {slowest}")
    assert {name: ratio for name, ratio in ratios.items() if ratio > LINEAR_MAX} == {}


@pytest.mark.parametrize("value", ["\0", "4242424242424242"])
def test_errors_below_a_long_name_take_little_memory(value: str) -> None:
    text = line(details={"x" * 1_000_000: {f"{number}": value for number in range(100)}})

    tracemalloc.start()
    parse(RawRecord(Location("f", 1), text))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 10 * len(text)  # 100 copies of the name would take 100 times as much
