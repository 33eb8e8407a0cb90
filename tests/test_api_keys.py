"""The text of an API key, and the IDs that the service generates."""

import re
import string
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments.models import identifiers
from payments.models.identifiers import EPOCH, RANDOM_BYTES, base62, make_payment_id

KEY = "live_0123456789abcdefghijABCDEFGHIJKL" + identifiers.checksum("live_0123456789abcdefghijABCDEFGHIJKL")

times = st.integers(0, 2**47).map(lambda milliseconds: EPOCH + timedelta(milliseconds=milliseconds % 10**14))
randomness = st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES)


@pytest.mark.parametrize("mode", ["live", "test"])
def test_key_is_one_word_that_begins_with_its_mode(mode: str) -> None:
    key = identifiers.new_key(mode)

    assert re.fullmatch(rf"{mode}_[A-Za-z0-9]{{30,}}", key)
    assert identifiers.is_key(key)


def test_keys_issued_by_earlier_releases_stay_valid() -> None:
    assert identifiers.is_key("live_0123456789abcdefghijABCDEFGHIJKL0NYiJo")


def test_new_keys_differ() -> None:
    assert len({identifiers.new_key("live") for _ in range(1000)}) == 1000


@given(st.integers(0, len(KEY) - 1), st.sampled_from(string.ascii_letters + string.digits))
def test_checksum_detects_a_typo(position: int, character: str) -> None:
    typo = KEY[:position] + character + KEY[position + 1 :]

    assert identifiers.is_key(typo) is (typo == KEY)


@pytest.mark.parametrize(
    "text", ["", "live_", KEY[:-1], KEY + "0", KEY + "\n", f" {KEY}", KEY.upper(), KEY[5:], "prod" + KEY[4:]]
)
def test_other_texts_are_not_keys(text: str) -> None:
    assert not identifiers.is_key(text)


@pytest.mark.parametrize("body", ["prod_" + "a" * 32, "live_" + "-" * 32, "live_" + "a" * 31, "live_" + "a" * 33])
def test_text_of_another_form_is_not_a_key_despite_its_checksum(body: str) -> None:
    assert not identifiers.is_key(body + identifiers.checksum(body))


def test_hint_of_a_key_is_the_end_of_its_checksum() -> None:
    assert identifiers.hint("live_0123456789abcdefghijABCDEFGHIJKL0NYiJo") == "YiJo"
    assert identifiers.HINT_CHARACTERS < identifiers.CHECKSUM_CHARACTERS


def test_digest_of_a_key_is_its_sha_256() -> None:
    assert identifiers.digest("test") == "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@given(times, randomness, times, randomness)
def test_ids_sort_like_their_times(first: datetime, first_bytes: bytes, second: datetime, second_bytes: bytes) -> None:
    first_id, second_id = make_payment_id(first, first_bytes), make_payment_id(second, second_bytes)

    assert (first_id < second_id) == ((first, first_bytes) < (second, second_bytes))


@pytest.mark.parametrize("time", [EPOCH, datetime(2026, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)])
def test_id_has_the_form_of_the_contract(time: datetime) -> None:
    assert re.fullmatch(r"pt_[A-Za-z0-9]{22}", make_payment_id(time, b"\xff" * RANDOM_BYTES))


@pytest.mark.parametrize(("number", "text"), [(0, "00"), (61, "0z"), (62, "10"), (62**2 - 1, "zz")])
def test_base_62_sorts_like_bytes(number: int, text: str) -> None:
    assert base62(number, digits=2) == text
