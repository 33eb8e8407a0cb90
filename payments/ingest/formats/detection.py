"""Splits files into records: JSON Lines, JSON documents, saved pages of the API and CSV, also compressed by gzip.

The format is detected. Only one value at a time is held in memory, so the size of a file is not limited.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from itertools import chain

import msgspec
from msgspec import Raw

from payments.conf import conf
from payments.ingest.errors import unreadable
from payments.ingest.formats.api_pages import EMPTY_OBJECT, PAGE_MARK, unwrap_page
from payments.ingest.formats.csv_files import read_rows
from payments.ingest.formats.csv_headers import find_delimiter
from payments.ingest.formats.json_documents import DocumentSplitter
from payments.ingest.formats.sources import (
    GZIP_MARK,
    RAW_BYTES_MAX,
    Location,
    RawRecord,
    Source,
    UnreadableSource,
    read_chunks,
    whole_lines,
)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# The lines before the header of CSV: empty rows, dashes, and the line in which Excel notes the delimiter.
BEFORE_HEADER = re.compile(rb'(?:[\s,;-]*\n|"?sep=[^\n]{0,99}\n)+', re.IGNORECASE | re.ASCII)

LINE = re.compile(rb"\S[^\n]*+")

# Why files are refused that start with these bytes.
UTF_16 = "is encoded in UTF-16. Save it as UTF-8"
OTHER_FORMATS = {
    b"<": "is XML or HTML. An import reads JSON and CSV",
    GZIP_MARK: "is compressed more than once. Decompress it",
    b"\xd0\xcf\x11\xe0": "is a spreadsheet. Save the sheet as CSV",
    b"PK\x03\x04": "is a ZIP archive or a spreadsheet. Unpack it, or save the sheet as CSV",
    b"\xff\xfe": UTF_16,
    b"\xfe\xff": UTF_16,
}
UNKNOWN_FORMAT = "is neither JSON nor CSV. The first line of CSV must name the fields, such as id,mode"


def read_records(source: Source, *, ignores_unknown_fields: bool = False) -> Iterator[RawRecord]:
    """Yield the records of `source` in order. Empty objects are skipped: in some arrays they stand for unused entries.

    With `ignores_unknown_fields`, a CSV file may have other columns.

    :raises UnreadableSource: if the source ends too early, is damaged, cannot be read further or has another format
    """
    location = Location(source.name, 1)
    try:
        for value in split_values(source, ignores_unknown_fields=ignores_unknown_fields):
            location = value.location
            if PAGE_MARK in value.text or EMPTY_OBJECT.match(value.text):
                yield from unwrap_page(value)
            else:
                yield value
    except UnreadableSource:
        raise
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UnreadableSource(location, f"the gzip stream is damaged after this: {error}") from error
    except OSError as error:
        raise UnreadableSource(location, f"cannot be read any further: {error.strerror}") from error
    except Exception as bug:  # noqa: BLE001
        raise UnreadableSource(location, f"{unreadable(bug)} any further") from None


def split_values(source: Source, *, ignores_unknown_fields: bool) -> Iterator[RawRecord]:
    """Yield the JSON values of `source`, or its rows as JSON. The elements of a top-level array count as values.

    :raises UnreadableSource: the format is unknown
    """
    if source.form:
        return source.form(source.name, source.stream)
    chunks = read_chunks(source.stream)
    first_chunk = read_start(chunks)
    text = first_chunk.lstrip()
    if not text or text.startswith((b"{", b"[")):
        all_chunks = chain([first_chunk], chunks)
        if is_json_document(first_chunk):
            return DocumentSplitter(source.name).split(all_chunks)
        return read_json_lines(source.name, all_chunks)
    first_rows, delimiter = find_header(first_chunk)
    if delimiter:
        all_chunks = chain([first_rows], chunks)
        return read_rows(source.name, all_chunks, delimiter=delimiter, ignores_unknown_fields=ignores_unknown_fields)
    formats = (form for start, form in OTHER_FORMATS.items() if text.startswith(start))
    raise UnreadableSource(Location(source.name, 1), next(formats, UNKNOWN_FORMAT))


def read_start(chunks: Iterator[bytes], *, bytes_max: int | None = None) -> bytes:
    """Return the start of a file, up to the line after its header, unless this is longer than `bytes_max`.

    The first line of an array is not needed. It may be as long as the file.
    """
    start = b""
    bytes_max = bytes_max or conf.IMPORT_VALUE_BYTES_MAX
    for chunk in chunks:
        start = (start + chunk).removeprefix(BYTE_ORDER_MARK)
        text = b"" if start.isspace() else from_header(start).strip()
        if text.startswith(b"[") or b"\n" in text or len(start) > bytes_max:
            break
    return start


def find_header(start: bytes) -> tuple[bytes, str | None]:
    """Return the start of a CSV file as `from_header` does, and its delimiter; None if the file is not CSV."""
    rows = from_header(start)
    line, *_ = rows.strip(b"\r\n").splitlines() or [b""]  # also if the lines end in CR
    return rows, find_delimiter(line[:RAW_BYTES_MAX].decode(errors="replace"))


def from_header(start: bytes) -> bytes:
    """Return the start of a CSV file with an empty line for each line before its header."""
    match = BEFORE_HEADER.match(start)
    return b"\n" * match[0].count(b"\n") + start[match.end() :] if match else start


def is_json_document(first_chunk: bytes) -> bool:
    """Tell JSON documents from JSON Lines.

    JSON documents are an array, or values that span several lines or share a line. In JSON Lines, the first line is a
    complete value. If it is damaged, the second line begins a value.
    """
    first_line, _, rest = first_chunk.lstrip().partition(b"\n")
    if first_line.startswith(b"["):
        return True
    try:
        msgspec.json.decode(first_line, type=Raw)
    except msgspec.DecodeError as error:
        if is_truncated(error):
            return bool(rest) and not rest.lstrip().startswith(b"{")
        return has_trailing_characters(error)
    except RecursionError:  # the validation reports it
        return False
    return False


def is_truncated(error: msgspec.DecodeError) -> bool:
    """Return whether a text ends before its JSON value does. msgspec has no error codes, only messages."""
    return "truncated" in str(error)


def has_trailing_characters(error: msgspec.DecodeError) -> bool:
    """Return whether a text continues after its JSON value."""
    return "trailing characters" in str(error)


def read_json_lines(name: str, chunks: Iterator[bytes], *, bytes_max: int | None = None) -> Iterator[RawRecord]:
    """Yield the lines that are not blank. Blank ones take no time: a client could send millions."""
    number = 1
    for lines in whole_lines(name, chunks, bytes_max=bytes_max):
        counted = 0
        for match in LINE.finditer(lines):
            number += lines.count(b"\n", counted, match.start())
            counted = match.start()
            yield RawRecord(Location(name, number), match[0].rstrip())
        number += lines.count(b"\n", counted)
