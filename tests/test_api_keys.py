"""The text of a key, and the ids made here."""

import re
import string
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments import api_keys
from payments.identifiers import EPOCH, RANDOM_BYTES, base62, payment_id

KEY = "live_0123456789abcdefghijABCDEFGHIJKL" + api_keys.checksum("live_0123456789abcdefghijABCDEFGHIJKL")

moments = st.integers(0, 2**47).map(lambda milliseconds: EPOCH + timedelta(milliseconds=milliseconds % 10**14))
randomness = st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES)


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_key_is_a_word_that_begins_with_its_mode(mode: str) -> None:
    key = api_keys.new_key(mode)

    assert re.fullmatch(rf"{mode}_[A-Za-z0-9]{{30,}}", key)
    assert api_keys.is_key(key)


def test_keys_issued_by_earlier_releases_stay_valid() -> None:
    assert api_keys.is_key("live_0123456789abcdefghijABCDEFGHIJKL0NYiJo")


def test_no_two_keys_are_the_same() -> None:
    assert len({api_keys.new_key("live") for _ in range(1000)}) == 1000


@given(st.integers(0, len(KEY) - 1), st.sampled_from(string.ascii_letters + string.digits))
def test_a_typo_is_told_without_a_database(position: int, character: str) -> None:
    typo = KEY[:position] + character + KEY[position + 1 :]

    assert api_keys.is_key(typo) is (typo == KEY)


@pytest.mark.parametrize(
    "text", ["", "live_", KEY[:-1], KEY + "0", KEY + "\n", f" {KEY}", KEY.upper(), KEY[5:], "prod" + KEY[4:]]
)
def test_other_texts_are_no_keys(text: str) -> None:
    assert not api_keys.is_key(text)


@pytest.mark.parametrize("body", ["prod_" + "a" * 32, "live_" + "-" * 32, "live_" + "a" * 31, "live_" + "a" * 33])
def test_a_right_checksum_does_not_make_a_key_of_another_form(body: str) -> None:
    assert not api_keys.is_key(body + api_keys.checksum(body))


def test_a_keys_digest_is_its_sha_256() -> None:
    assert api_keys.digest("test") == "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@given(moments, randomness, moments, randomness)
def test_ids_sort_as_their_moments_do(first: datetime, one: bytes, second: datetime, other: bytes) -> None:
    earlier, later = payment_id(first, one), payment_id(second, other)

    assert ((first, one) < (second, other)) == (earlier < later)


@pytest.mark.parametrize("moment", [EPOCH, datetime(2026, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)])
def test_an_id_has_the_contracts_form(moment: datetime) -> None:
    assert re.fullmatch(r"pt_[A-Za-z0-9]{22}", payment_id(moment, b"\xff" * RANDOM_BYTES))


@pytest.mark.parametrize(("number", "text"), [(0, "00"), (61, "0z"), (62, "10"), (62**2 - 1, "zz")])
def test_base_62_has_the_order_of_bytes(number: int, text: str) -> None:
    assert base62(number, digits=2) == text
