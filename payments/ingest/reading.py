"""Splits files into records: JSON Lines, JSON documents and saved pages of the API, also compressed by gzip.

The format is detected. Only one value at a time is held in memory, so the size of a file is not limited.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from payments.ingest.decoder_messages import has_trailing_characters, is_truncated

CHUNK_BYTES = 2**18
VALUE_BYTES_MAX = 2**24

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP_MARK = b"\x1f\x8b"
PAGE_MARK = b'"_embedded"'
EMPTY_OBJECT = re.compile(rb"\{\s*\}\Z")

# Everything up to the next bracket outside a string. The quantifiers are possessive, so that an incomplete string fails
# without backtracking.
UP_TO_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:"(?:[^"\\]++|\\.)*+"[^"\[\]{}]*+)*+([\[\]{}])', re.DOTALL)


@dataclass(frozen=True)
class Source:
    """A stream of bytes and its name in messages."""

    name: str
    stream: BufferedReader


class Location(Struct, frozen=True, gc=False):
    """The line on which a record begins, and its number in its array or page, where records may share a line."""

    source: str
    line: int
    number: int | None = None

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" + (f": record {self.number}" if self.number else "")


class RawRecord(NamedTuple):
    """A record before validation. The text may not even be JSON."""

    location: Location
    text: bytes


class UnreadableSource(Exception):
    """A source contains no further records from `location` on, although it does not end there."""

    def __init__(self, location: Location, reason: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.location = location
        self.reason = reason


def read_records(source: Source) -> Iterator[RawRecord]:
    """Yield the records of `source` in order. Empty objects are skipped: in some arrays they stand for unused entries.

    :raises UnreadableSource: if the source ends too early, is damaged, cannot be read further or has another format
    """
    location = Location(source.name, 1)
    try:
        for value in split_values(source):
            location = value.location
            if PAGE_MARK in value.text or EMPTY_OBJECT.match(value.text):
                yield from unwrap_page(value)
            else:
                yield value
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UnreadableSource(location, f"the gzip stream is damaged after this: {error}") from error
    except OSError as error:
        raise UnreadableSource(location, f"cannot be read any further: {error.strerror}") from error


def split_values(source: Source) -> Iterator[RawRecord]:
    """Yield the JSON values of `source`. The elements of a top-level array count as values."""
    chunks = read_chunks(source.stream)
    first_chunk = next(chunks, b"").removeprefix(BYTE_ORDER_MARK)
    all_chunks = chain([first_chunk], chunks)
    if is_json_document(first_chunk):
        return DocumentSplitter(source.name).split(all_chunks)
    return split_lines(source.name, all_chunks)


def read_chunks(stream: BufferedReader) -> Iterator[bytes]:
    """Yield the content of a stream, decompressed if it is in gzip."""
    is_compressed = stream.peek(len(GZIP_MARK)).startswith(GZIP_MARK)
    content = gzip.GzipFile(fileobj=stream) if is_compressed else stream
    return iter(partial(content.read, CHUNK_BYTES), b"")


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


def split_lines(name: str, chunks: Iterator[bytes]) -> Iterator[RawRecord]:
    """Yield the lines of JSON Lines, without blank lines."""
    number = 1
    incomplete = b""
    for chunk in chunks:
        *complete, incomplete = (incomplete + chunk).split(b"\n")
        for line in complete:
            if text := line.strip():
                yield RawRecord(Location(name, number), text)
            number += 1
        refuse_oversize(incomplete, Location(name, number))
    if text := incomplete.strip():
        yield RawRecord(Location(name, number), text)


def refuse_oversize(incomplete: bytes, location: Location) -> None:
    if len(incomplete) > VALUE_BYTES_MAX:
        raise UnreadableSource(location, f"longer than {VALUE_BYTES_MAX} bytes")


@dataclass
class DocumentSplitter:
    """Splits JSON documents into their objects and the elements of their arrays, chunk by chunk.

    The splitter only matches brackets; the validation parses the values. `depth` and `number` are its state:

    | depth | number | state |
    |---|---|---|
    | 0 | None | between documents |
    | 0 | set | in an array, between its elements |
    | above 0 | None | in an object that is a document |
    | above 0 | set | in an object that is an element of an array |

    Between values, the text from `begin` on is a gap: whitespace, or the comma between two elements.
    """

    name: str
    buffer: bytes = b""
    begin: int = 0  # where the current value or gap begins in the buffer
    scanned: int = 0  # where the search for the next bracket goes on in the buffer
    line: int = 1  # the line number of `begin`
    depth: int = 0  # the number of open brackets of the current value
    number: int | None = None  # the number of elements of the current array so far

    def split(self, chunks: Iterator[bytes]) -> Iterator[RawRecord]:
        for chunk in chunks:
            self.buffer = self.buffer[self.begin :] + chunk
            self.scanned -= self.begin
            self.begin = 0
            while match := UP_TO_BRACKET.match(self.buffer, self.scanned):
                self.scanned = match.end()
                if self.depth == 0:
                    self.end_gap(match[1])
                elif match[1] in b"[{":
                    self.depth += 1
                else:
                    self.depth -= 1
                    if self.depth == 0:
                        yield RawRecord(self.location, self.take(self.scanned))
            refuse_oversize(self.buffer[self.begin :], self.location)
        self.refuse_incomplete_end()

    @property
    def location(self) -> Location:
        return Location(self.name, self.line, self.number)

    def end_gap(self, bracket: bytes) -> None:
        """End the gap at a bracket that opens an object or an array, or closes an array."""
        gap = self.take(self.scanned - 1).strip()
        comma = b"," if self.number and bracket == b"{" else b""
        if bracket == b"{" and gap == comma:
            self.depth = 1
            self.number = None if self.number is None else self.number + 1
        elif bracket == b"[" and gap == b"" and self.number is None:
            self.number = 0
            self.take(self.scanned)
        elif bracket == b"]" and gap == b"" and self.number is not None:
            self.number = None
            self.take(self.scanned)
        else:
            raise self.unexpected()

    def take(self, end: int) -> bytes:
        """Return the text from `begin` to `end`, where the next value or gap begins."""
        text = self.buffer[self.begin : end]
        self.line += text.count(b"\n")
        self.begin = end
        return text

    def refuse_incomplete_end(self) -> None:
        if self.depth > 0:
            raise UnreadableSource(self.location, "the file ends in the middle of this record")
        if self.number is not None:
            raise UnreadableSource(Location(self.name, self.line), "the file ends before its array is closed")
        rest = self.buffer[self.begin :]
        if rest.strip():
            self.take(len(self.buffer) - len(rest.lstrip()))
            raise self.unexpected()

    def unexpected(self) -> UnreadableSource:
        return UnreadableSource(Location(self.name, self.line), "expected a record here")


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
