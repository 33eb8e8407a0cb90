"""Splits JSON documents, which may span several lines, into their values without parsing these."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from payments.ingest.formats.sources import Location, RawRecord, UnreadableSource, refuse_oversize

# Everything up to the next bracket outside a string. The quantifiers are possessive, so that an incomplete string fails
# without backtracking.
UP_TO_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:"(?:[^"\\]++|\\.)*+"[^"\[\]{}]*+)*+([\[\]{}])', re.DOTALL)


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
            refuse_oversize(len(self.buffer) - self.begin, self.location)
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
