"""Saved pages of the API, and the records in them."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from payments.ingest.sources import Location, RawRecord

PAGE_MARK = b'"_embedded"'
EMPTY_OBJECT = re.compile(rb"\{\s*\}\Z")


class Embedded(Struct):
    """The records of a page."""

    payments: list[Raw]


class InputPage(Struct, rename={"embedded": "_embedded"}):
    """A saved page of the API."""

    embedded: Embedded | UnsetType = UNSET


def unwrap_page(value: RawRecord) -> Iterator[RawRecord]:
    """Yield the records of a page, or the value itself if it is not a page. Empty objects are skipped."""
    if EMPTY_OBJECT.match(value.text):
        return
    page = decode_page(value.text)
    if page is UNSET:
        yield value
        return
    line, end = value.location.line, 0
    for number, raw in enumerate(page.payments, start=1):
        text = bytes(raw)
        begin = value.text.index(text, end)
        line += value.text.count(b"\n", end, begin)
        if not EMPTY_OBJECT.match(text):
            yield RawRecord(Location(value.location.source, line, number), text)
        line += text.count(b"\n")
        end = begin + len(text)


def decode_page(text: bytes) -> Embedded | UnsetType:
    """Return the records of a page. If the text is not a page, return UNSET: its validation reports the reason."""
    try:
        return msgspec.json.decode(text, type=InputPage).embedded
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UNSET
