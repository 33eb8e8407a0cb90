"""Reads the messages of msgspec's exceptions.

msgspec has neither error codes nor attributes for the field and the problem, so this module matches its wording. Only
this module does. tests/ingest/test_decoder_messages.py fails if the wording changes.
"""

import re
from enum import Enum, auto
from typing import NamedTuple

import msgspec

# The problem and the path. The problem may repeat a part of the input, even one that looks like a path.
MESSAGE = re.compile(r"\A(.*?)(?: - at `\$([\w.\[\]]*)`)?\Z", re.DOTALL)
FIELD_PROBLEM = re.compile(r"Object (missing required|contains unknown) field `(.*?)`?", re.DOTALL)


class Problem(Enum):
    """The kinds of problems with a field."""

    MISSING = auto()
    UNKNOWN = auto()
    NULL = auto()
    OTHER = auto()


class DecoderMessage(NamedTuple):
    """The parts of a message."""

    problem: Problem
    path: str  # such as "amount.value"; empty for the decoded value itself
    text: str  # the problem in msgspec's words; it may repeat a part of the input


def parse_message(error: msgspec.ValidationError) -> DecoderMessage:
    """Return the parts of a message."""
    [(text, path)] = MESSAGE.findall(str(error))
    path = path.replace("[...]", "").removeprefix(".")
    if match := FIELD_PROBLEM.fullmatch(text):
        problem = Problem.MISSING if match[1] == "missing required" else Problem.UNKNOWN
        return DecoderMessage(problem, f"{path}.{match[2]}".removeprefix("."), text)
    return DecoderMessage(Problem.NULL if text.endswith("got `null`") else Problem.OTHER, path, text)


def is_truncated(error: msgspec.DecodeError) -> bool:
    """Return whether a text ends before its JSON value does."""
    return "truncated" in str(error)


def has_trailing_characters(error: msgspec.DecodeError) -> bool:
    """Return whether a text continues after its JSON value."""
    return "trailing characters" in str(error)
