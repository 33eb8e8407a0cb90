"""Sources of an import: streams of bytes, the locations of their records, and their limits."""

import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from msgspec import Struct

from payments.conf import conf
from payments.ingest.errors import FieldError, InvalidRecord

CHUNK_BYTES = 2**18

GZIP_MARK = b"\x1f\x8b"

# A longer record is not parsed: its values take many times as much memory.
RAW_BYTES_MAX = 2**20


@dataclass(frozen=True)
class Source:
    """A stream of bytes and its name in messages. Its form and its compression are detected, unless `form` reads it."""

    name: str
    stream: BinaryIO
    form: "Callable[[str, BinaryIO], Iterator[RawRecord]] | None" = None


class Location(Struct, frozen=True, gc=False):
    """The line on which a record begins, and its number in its array or page, where records may share a line.

    `columns` are the names and numbers of the columns of a CSV file.
    """

    source: str
    line: int
    number: int | None = None
    columns: Mapping[str, int] | None = None

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" + (f": record {self.number}" if self.number else "")

    def describe(self, error: FieldError) -> str:
        """Return an error with its location; in a CSV file, with the column of the field or of the object around it."""
        field, columns = error.field or "", self.columns or {}
        number = columns.get(field) or columns.get(field.partition(".")[0])
        return f"{self}: column {number}: {error}" if field and number else f"{self}: {error}"


class RawRecord(NamedTuple):
    """A record before validation. The text may not even be JSON.

    A row of a CSV file may have an error already, and it may have values in columns that are skipped.
    """

    location: Location
    text: bytes
    error: InvalidRecord | None = None
    ignored: int = 0


class UnreadableSource(Exception):
    """A source contains no further records from `location` on, although it does not end there."""

    def __init__(self, location: Location, reason: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.location = location
        self.reason = reason


class InvalidHeader(UnreadableSource):
    """The first line of a CSV file does not name the members of a record."""


def read_chunks(stream: Any) -> Iterator[bytes]:
    """Yield the content of a buffered reader, decompressed if it is in gzip."""
    is_compressed = stream.peek(len(GZIP_MARK)).startswith(GZIP_MARK)
    return divide(gzip.GzipFile(fileobj=stream) if is_compressed else stream)


def divide(stream: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    """Yield the content of a stream in chunks."""
    return iter(partial(stream.read, CHUNK_BYTES), b"")


def split_lines(name: str, chunks: Iterator[bytes], *, bytes_max: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a file without their line feeds. For the errors, see `whole_lines`."""
    for lines in whole_lines(name, chunks, bytes_max=bytes_max):
        yield from lines.removesuffix(b"\n").split(b"\n")


def whole_lines(name: str, chunks: Iterator[bytes], *, bytes_max: int | None = None) -> Iterator[bytes]:
    """Yield the content of a file in parts that end with a line.

    :raises UnreadableSource: a line is too long
    """
    number = 1
    incomplete = b""
    for chunk in chunks:
        content = incomplete + chunk
        end = content.rfind(b"\n") + 1
        if end:
            yield content[:end]
        number += content.count(b"\n")
        incomplete = content[end:]
        refuse_oversize(len(incomplete), Location(name, number), bytes_max=bytes_max)
    if incomplete:
        yield incomplete


def refuse_oversize(length: int, location: Location, *, bytes_max: int | None = None) -> None:
    bytes_max = bytes_max or conf.IMPORT_VALUE_BYTES_MAX
    if length > bytes_max:
        raise UnreadableSource(location, f"longer than {bytes_max} bytes")
