"""Readers for content whose form is known, such as by the media type of a request. They refuse any other form."""

from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from payments.ingest.formats.csv_files import read_rows
from payments.ingest.formats.detection import find_header, is_json_document, read_json_lines, read_start
from payments.ingest.formats.json_documents import DocumentSplitter
from payments.ingest.formats.sources import RAW_BYTES_MAX, Location, RawRecord, UnreadableSource, divide

NOT_JSON = "is not one JSON document. Several records are an array, or JSON Lines"
NOT_JSON_LINES = "is not JSON Lines. Write one JSON object on each line"
NOT_CSV = "is not CSV. The first line must name the fields, such as id,mode"


def json_document(name: str, stream: BinaryIO) -> Iterator[RawRecord]:
    """Yield a record or a page, or the elements of an array. The content is one chunk: a page is not copied then.

    :raises UnreadableSource: the content is something else, or has several documents
    """
    number: int | None = 0  # of the last element
    for value in DocumentSplitter(name).split(iter([read_start(iter([stream.read()]))])):
        if number is None or (number and (value.location.number or 0) <= number):
            raise UnreadableSource(value.location, NOT_JSON)
        number = value.location.number
        yield value


def json_lines(name: str, stream: BinaryIO) -> Iterator[RawRecord]:
    chunks = divide(stream)
    start = read_start(chunks, bytes_max=RAW_BYTES_MAX)
    text = start.lstrip()
    if text and (not text.startswith(b"{") or is_json_document(start)):
        raise UnreadableSource(Location(name, 1), NOT_JSON_LINES)
    yield from read_json_lines(name, chain([start], chunks), bytes_max=RAW_BYTES_MAX)


def csv(name: str, stream: BinaryIO) -> Iterator[RawRecord]:
    chunks = divide(stream)
    start = read_start(chunks, bytes_max=RAW_BYTES_MAX)
    if not start.strip() and not next(chunks, b""):
        return
    rows, delimiter = find_header(start)
    if delimiter is None:
        raise UnreadableSource(Location(name, 1), NOT_CSV)
    yield from read_rows(name, chain([rows], chunks), delimiter=delimiter, ignores_unknown_fields=False)
