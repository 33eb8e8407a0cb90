"""Streams of an import that return little at a time, or never end."""

from io import BufferedReader, BytesIO, RawIOBase
from typing import Any

from payments.ingest.formats.sources import Source


class ShortReads(BufferedReader):
    """A stream that returns at most `size` bytes at a time."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(BytesIO(content))
        self.size = size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.size if size is None or size < 0 else min(size, self.size))


class Endless(RawIOBase):
    """A stream that begins with `beginning` and goes on with the letter x."""

    def __init__(self, beginning: bytes) -> None:
        self.rest = beginning

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[:] = part.ljust(len(buffer), b"x")
        return len(buffer)


def read_in_parts(content: bytes, size: int) -> Source:
    """Return a source whose stream returns at most `size` bytes at a time."""
    return Source("f", ShortReads(content, size))


def endless_source(beginning: bytes) -> Source:
    return Source("f", BufferedReader(Endless(beginning)))
