"""The wording of msgspec's messages. If a test fails after an update of msgspec, adapt decoder_messages.py."""

from typing import Literal

import msgspec
import pytest
from msgspec import Struct

from payments.ingest.decoder_messages import ErrorKind, has_trailing_characters, is_truncated, parse_message


class Inner(Struct, forbid_unknown_fields=True):
    text: str


class Outer(Struct, forbid_unknown_fields=True):
    inner: Inner
    texts: dict[str, str] = {}
    word: Literal["a", "b"] = "a"


@pytest.mark.parametrize(
    ("text", "kind", "path"),
    [
        ("{}", ErrorKind.MISSING, "inner"),
        ('{"inner":{}}', ErrorKind.MISSING, "inner.text"),
        ('{"other":1}', ErrorKind.UNKNOWN, "other"),
        ('{"inner":{"text":"x","other":1}}', ErrorKind.UNKNOWN, "inner.other"),
        ("null", ErrorKind.NULL, ""),
        ('{"inner":{"text":null}}', ErrorKind.NULL, "inner.text"),
        ('{"texts":{"a":null}}', ErrorKind.NULL, "texts"),
        ("7", ErrorKind.OTHER, ""),
        ('{"inner":{"text":7}}', ErrorKind.OTHER, "inner.text"),
        ('{"texts":{"a":7}}', ErrorKind.OTHER, "texts"),
        ('{"word":"c"}', ErrorKind.OTHER, "word"),
        ('{"word":"x` - at `$.inner"}', ErrorKind.OTHER, "word"),
    ],
)
def test_message_names_kind_and_path(text: str, kind: ErrorKind, path: str) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.json.decode(text, type=Outer)

    assert parse_message(error.value)[:2] == (kind, path)


@pytest.mark.parametrize(
    ("text", "is_cut", "has_more"),
    [("", True, False), ('{"a":1', True, False), ("{}{}", False, True), ("{]", False, False)],
)
def test_message_tells_truncated_text_from_trailing_characters(text: str, is_cut: bool, has_more: bool) -> None:
    with pytest.raises(msgspec.DecodeError) as error:
        msgspec.json.decode(text)

    assert is_truncated(error.value) == is_cut
    assert has_trailing_characters(error.value) == has_more
