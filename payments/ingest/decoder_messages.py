"""Reads the messages of msgspec's exceptions.

msgspec has no error codes, so this module matches its wording. Only this module does.
tests/ingest/test_decoder_messages.py fails if the wording changes.
"""

import msgspec


def is_truncated(error: msgspec.DecodeError) -> bool:
    """Return whether a text ends before its JSON value does."""
    return "truncated" in str(error)


def has_trailing_characters(error: msgspec.DecodeError) -> bool:
    """Return whether a text continues after its JSON value."""
    return "trailing characters" in str(error)
