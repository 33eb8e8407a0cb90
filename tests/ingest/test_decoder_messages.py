"""The wording of msgspec's messages. After an update, adapt payments/ingest/formats/detection.py."""

import msgspec
import pytest

from payments.ingest.formats.detection import has_trailing_characters, is_truncated

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("text", "is_cut", "has_more"),
    [("", True, False), ('{"a":1', True, False), ("{}{}", False, True), ("{]", False, False)],
)
def test_message_tells_truncated_text_from_trailing_characters(text: str, is_cut: bool, has_more: bool) -> None:
    with pytest.raises(msgspec.DecodeError) as error:
        msgspec.json.decode(text)

    assert is_truncated(error.value) == is_cut
    assert has_trailing_characters(error.value) == has_more
