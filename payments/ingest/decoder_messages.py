"""Reads the messages of msgspec's exceptions.

msgspec has neither error codes nor attributes for the field and the error, so this module matches its wording. Only
this module does. tests/ingest/test_decoder_messages.py fails if the wording changes.
"""

import re
from enum import Enum, auto
from typing import NamedTuple

import msgspec

# The error and the path. The error may repeat a part of the input, even one that looks like a path.
MESSAGE = re.compile(r"\A(.*?)(?: - at `\$([\w.\[\]]*)`)?\Z", re.DOTALL)
FIELD_ERROR = re.compile(r"Object (missing required|contains unknown) field `(.*?)`?", re.DOTALL)


class ErrorKind(Enum):
    """The kinds of errors of a field."""

    MISSING = auto()
    UNKNOWN = auto()
    NULL = auto()
    OTHER = auto()


class DecoderMessage(NamedTuple):
    """The parts of a message."""

    kind: ErrorKind
    path: str  # such as "amount.value"; empty for the decoded value itself
    text: str  # the error in msgspec's words; it may repeat a part of the input


def parse_message(error: msgspec.ValidationError) -> DecoderMessage:
    """Return the parts of a message."""
    [(text, path)] = MESSAGE.findall(str(error))
    path = path.replace("[...]", "").removeprefix(".")
    if match := FIELD_ERROR.fullmatch(text):
        kind = ErrorKind.MISSING if match[1] == "missing required" else ErrorKind.UNKNOWN
        return DecoderMessage(kind, f"{path}.{match[2]}".removeprefix("."), text)
    return DecoderMessage(ErrorKind.NULL if text.endswith("got `null`") else ErrorKind.OTHER, path, text)


def is_truncated(error: msgspec.DecodeError) -> bool:
    """Return whether a text ends before its JSON value does."""
    return "truncated" in str(error)


def has_trailing_characters(error: msgspec.DecodeError) -> bool:
    """Return whether a text continues after its JSON value."""
    return "trailing characters" in str(error)
