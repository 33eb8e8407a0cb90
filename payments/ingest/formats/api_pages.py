"""Saved pages of the API, and the records in them."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from payments.ingest.errors import InvalidRecord, unreadable
from payments.ingest.formats.sources import Location, RawRecord
from payments.ingest.json_values import DUPLICATE_NAME, parse_json

PAGE_MARK = b'"_embedded"'
EMPTY_OBJECT = re.compile(rb"\{\s*\}\Z")


class Embedded(Struct):
    """The records of a page: a list."""

    payments: Raw


class InputPage(Struct, rename={"embedded": "_embedded"}):
    """A saved page of the API."""

    embedded: Embedded | UnsetType = UNSET


decode_page = msgspec.json.Decoder(InputPage).decode
decode_list = msgspec.json.Decoder(list[Raw]).decode


def unwrap_page(value: RawRecord) -> Iterator[RawRecord]:
    """Yield the records of a page, or the value itself if it is not a page. Empty objects are skipped.

    A page with two lists of records is one invalid record: a decoder would return only the last list.
    """
    if EMPTY_OBJECT.match(value.text):
        return
    try:
        page = decode_page(value.text).embedded
        if page is UNSET:
            yield value
            return
        records = decode_list(page.payments)
        list_text = memoryview(page.payments)  # a copy may be as long as the file
        begin = value.text.index(list_text)
        repeated = repeated_name(value.text[:begin] + b"[]" + value.text[begin + len(list_text) :])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidRecord):
        yield value  # its validation reports the reason
        return
    except Exception as bug:  # noqa: BLE001
        yield value._replace(error=unreadable(bug))
        return
    if repeated:
        yield value._replace(error=InvalidRecord.of(repeated, DUPLICATE_NAME.reason))
    else:
        yield from locate_records(records, value, begin)


def repeated_name(envelope: bytes) -> str | None:
    """Return the member that occurs more than once and may have records. The page's own list has been removed."""
    page: dict[str, Any] = parse_json(envelope)
    if page["_embedded"] is DUPLICATE_NAME:
        return "_embedded"
    return "_embedded.payments" if page["_embedded"]["payments"] is DUPLICATE_NAME else None


def locate_records(records: list[Raw], page: RawRecord, begin: int) -> Iterator[RawRecord]:
    """Yield the records of a page with their locations; `begin` is where their list begins in the page."""
    line = page.location.line + page.text.count(b"\n", 0, begin)
    end = begin
    for number, raw in enumerate(records, start=1):
        text = bytes(raw)
        begin = page.text.index(text, end)
        line += page.text.count(b"\n", end, begin)
        if not EMPTY_OBJECT.match(text):
            yield RawRecord(Location(page.location.source, line, number), text)
        line += text.count(b"\n")
        end = begin + len(text)
