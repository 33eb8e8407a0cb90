"""Files of records, told by their content: JSON Lines, JSON arrays, saved page envelopes; each of them in gzip too.

Whatever its size, a file is held in memory one value at a time.
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

CHUNK_BYTES = 2**18
VALUE_BYTES_MAX = 2**24

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP_MARK = b"\x1f\x8b"
PAGE_MARK = b'"_embedded"'
EMPTY_OBJECT = re.compile(rb"\{\s*\}\Z")

# Everything up to the next bracket that is not part of a string. Possessive, so a half-read string fails at once.
UP_TO_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:"(?:[^"\\]++|\\.)*+"[^"\[\]{}]*+)*+([\[\]{}])', re.DOTALL)


@dataclass(frozen=True)
class Source:
    """A stream of bytes and the name by which people know it."""

    name: str
    stream: BufferedReader


class Place(Struct, frozen=True, gc=False):
    """Where a record begins; `number` counts the records of an array or page, which may share a line."""

    source: str
    line: int
    number: int | None = None

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" + (f": record {self.number}" if self.number else "")


class Text(NamedTuple):
    """A record as it stands, unchecked."""

    place: Place
    json: bytes


class Unreadable(Exception):
    """From `place` on, a source holds no list of records."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


def read(source: Source) -> Iterator[Text]:
    """Yield the records of `source` in its order; empty objects, which stand for unused entries, are passed over.

    :raises Unreadable: where the source ends too early, is damaged, cannot be read on, or is something else
    """
    place = Place(source.name, 1)
    try:
        for text in split(source):
            place = text.place
            if PAGE_MARK in text.json or EMPTY_OBJECT.match(text.json):
                yield from records(text)
            else:
                yield text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Unreadable(place, f"the gzip stream is damaged after this: {error}") from error
    except OSError as error:
        raise Unreadable(place, f"cannot be read any further: {error.strerror}") from error


def split(source: Source) -> Iterator[Text]:
    """Yield the JSON values of `source`, those in an array one by one."""
    chunks = uncompressed(source.stream)
    head = next(chunks, b"").removeprefix(BYTE_ORDER_MARK)
    values = Documents(source.name).split if is_document(head) else partial(lines, source.name)
    return values(chain([head], chunks))


def uncompressed(stream: BufferedReader) -> Iterator[bytes]:
    zipped = stream.peek(len(GZIP_MARK)).startswith(GZIP_MARK)
    plain = gzip.GzipFile(fileobj=stream) if zipped else stream
    return iter(partial(plain.read, CHUNK_BYTES), b"")


def is_document(head: bytes) -> bool:
    """Tell an array, or values that span lines or share one, from JSON Lines.

    There the first line is a whole value; or it is damaged, and the second begins one.
    """
    first, _, rest = head.lstrip().partition(b"\n")
    if first.startswith(b"["):
        return True
    try:
        msgspec.json.decode(first, type=Raw)
    except msgspec.DecodeError as error:
        if "trailing characters" in str(error):
            return True
        unfinished = "truncated" in str(error)
        return unfinished and bool(rest) and not rest.lstrip().startswith(b"{")
    except RecursionError:  # whoever reads the line will say so
        pass
    return False


def lines(name: str, chunks: Iterator[bytes]) -> Iterator[Text]:
    number = 1
    unfinished = b""
    for chunk in chunks:
        *whole, unfinished = (unfinished + chunk).split(b"\n")
        for line in whole:
            if text := line.strip():
                yield Text(Place(name, number), text)
            number += 1
        refuse_oversize(unfinished, Place(name, number))
    if text := unfinished.strip():
        yield Text(Place(name, number), text)


def refuse_oversize(unfinished: bytes, place: Place) -> None:
    if len(unfinished) > VALUE_BYTES_MAX:
        raise Unreadable(place, f"longer than {VALUE_BYTES_MAX} bytes")


@dataclass
class Documents:
    """Splits a text into its top-level objects and the elements of its top-level arrays, as its chunks come in."""

    name: str
    buffer: bytes = b""
    position: int = 0  # up to here the buffer has been looked at
    begin: int = 0  # of the value under way, or of the gap before the next one
    line: int = 1  # on which `begin` stands
    depth: int = 0  # of brackets within the value under way; 0: in a gap
    number: int | None = None  # of values in the array under way; None: outside of any

    def split(self, chunks: Iterator[bytes]) -> Iterator[Text]:
        for chunk in chunks:
            self.buffer = self.buffer[self.begin :] + chunk
            self.position -= self.begin
            self.begin = 0
            while bracket := UP_TO_BRACKET.match(self.buffer, self.position):
                self.position = bracket.end()
                if self.depth == 0:
                    self.enter(bracket[1])
                elif bracket[1] in b"[{":
                    self.depth += 1
                else:
                    self.depth -= 1
                    if self.depth == 0:
                        yield Text(self.place, self.take(self.position))
            refuse_oversize(self.buffer[self.begin :], self.place)
        self.refuse_rest()

    @property
    def place(self) -> Place:
        return Place(self.name, self.line, self.number)

    def enter(self, bracket: bytes) -> None:
        """End the gap before `bracket`, which begins a value or an array, or ends one."""
        gap = self.take(self.position - 1).strip()
        comma = b"," if self.number and bracket == b"{" else b""
        if bracket == b"{" and gap == comma:
            self.depth = 1
            self.number = None if self.number is None else self.number + 1
        elif bracket == b"[" and gap == b"" and self.number is None:
            self.number = 0
            self.take(self.position)
        elif bracket == b"]" and gap == b"" and self.number is not None:
            self.number = None
            self.take(self.position)
        else:
            raise Unreadable(Place(self.name, self.line), "expected a record here")

    def take(self, end: int) -> bytes:
        """Return what stands from `begin` to `end`, and go on from there."""
        taken = self.buffer[self.begin : end]
        self.line += taken.count(b"\n")
        self.begin = end
        return taken

    def refuse_rest(self) -> None:
        if self.depth > 0:
            raise Unreadable(self.place, "the file ends in the middle of this record")
        if self.number is not None:
            raise Unreadable(Place(self.name, self.line), "the file ends before its array does")
        rest = self.buffer[self.begin :]
        if rest.strip():
            self.take(len(self.buffer) - len(rest.lstrip()))
            raise Unreadable(Place(self.name, self.line), "expected a record here")


class Embedded(Struct):
    """The part of a page envelope that holds its records."""

    payments: list[Raw]


class Envelope(Struct, rename={"embedded": "_embedded"}):
    """A page as the API gives it out."""

    embedded: Embedded | UnsetType = UNSET


def records(text: Text) -> Iterator[Text]:
    """Yield the records that a value holds: those of a page, or itself."""
    if EMPTY_OBJECT.match(text.json):
        return
    envelope = read_envelope(text.json)
    if envelope is UNSET:
        yield text
        return
    line, end = text.place.line, 0
    for number, raw in enumerate(envelope.payments, start=1):
        json = bytes(raw)
        begin = text.json.index(json, end)
        line += text.json.count(b"\n", end, begin)
        if not EMPTY_OBJECT.match(json):
            yield Text(Place(text.place.source, line, number), json)
        line += json.count(b"\n")
        end = begin + len(json)


def read_envelope(json: bytes) -> Embedded | UnsetType:
    """Return a page's records; none where the value is no page, or not even JSON: its check will say what is wrong."""
    try:
        return msgspec.json.decode(json, type=Envelope).embedded
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UNSET
