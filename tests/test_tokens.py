"""Tokens of the change feed: a token stands for one position, and any other text is refused."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments.listing.tokens import TOKEN, FeedPosition, InvalidToken, Newest, format_token, parse_token
from payments.models import Mode

pytestmark = pytest.mark.once

numbers = st.integers(0, 2**62)
int64 = st.integers(-(2**63) + 1, 2**63 - 1)
positions = st.builds(
    FeedPosition,
    st.integers(1, 2**63 - 1),
    st.sampled_from(Mode.values),
    newest=st.builds(Newest, int64, numbers, int64),
    number=numbers,
    after=st.just("") | st.from_regex(r"\Apt_[A-Za-z0-9]{1,61}\Z"),
)


@given(positions)
def test_token_stands_for_its_position(position: FeedPosition) -> None:
    token = format_token(position)

    assert re.fullmatch(TOKEN, token)
    assert parse_token(token) == position


@given(st.text() | st.from_regex(TOKEN) | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_other_text_is_refused(text: str) -> None:
    try:
        position = parse_token(text)
    except InvalidToken:
        return
    assert format_token(position) == text


POSITION = FeedPosition(1, "live", Newest(2, 3, 4), number=3, after="pt_A")


@pytest.mark.parametrize(
    "wrong",
    [
        FeedPosition(0, "live"),
        FeedPosition(2**63, "live"),
        FeedPosition(1, "other"),
        FeedPosition(1, "live", number=-1),
        FeedPosition(1, "live", number=2**62 + 1),
        FeedPosition(1, "live", Newest(0, -1, 0)),
        FeedPosition(1, "live", after="ct_A"),
        FeedPosition(1, "live", after="pt_\0"),
    ],
)
def test_token_with_an_invalid_value_is_refused(wrong: FeedPosition) -> None:
    with pytest.raises(InvalidToken):
        parse_token(format_token(wrong))


@pytest.mark.parametrize("change", [lambda token: token + "A", lambda token: token[:-1], lambda token: f"{token}="])
def test_changed_token_is_refused(change: Callable[[str], str]) -> None:
    with pytest.raises(InvalidToken):
        parse_token(change(format_token(POSITION)))
