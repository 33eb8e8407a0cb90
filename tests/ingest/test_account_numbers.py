"""An IBAN with the length of its country and right check digits is no card number, wherever it stands."""

import random
import re
from collections.abc import Iterator
from itertools import filterfalse

import pytest

from payments.ingest.cards.details import find_in_text, has_clear_card_number
from tests.support.corpus import DIRECTORY

pytestmark = pytest.mark.once

CHARACTERS = {"n": "0123456789", "a": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "c": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"}

# The structure of an IBAN after its check digits, by country: `4!n12!c` are four digits and twelve characters.
REGISTRY = dict(re.findall(r"^([A-Z]{2}) (.+)$", (DIRECTORY / "card_data/iban_registry.txt").read_text(), re.MULTILINE))

CARD = "4242424242424242"


def numeric(text: str) -> int:
    return int("".join(str(int(character, 36)) for character in text))


def iban(country: str, account: str) -> str:
    return f"{country}{98 - numeric(f'{account}{country}00') % 97:02}{account}"


def length_of(country: str) -> int:
    """Return how many characters follow the check digits."""
    return sum(map(int, re.findall(r"[0-9]+", REGISTRY[country])))


def may_be(country: str, account: str) -> bool:
    """Return whether the characters have the kinds that the country's registry entry names."""
    kinds = {"n": "[0-9]", "a": "[A-Z]", "c": "[0-9A-Z]"}
    form = re.sub("([0-9]+)!([nac])", lambda part: f"{kinds[part[2]]}{{{part[1]}}}", REGISTRY[country])
    return re.fullmatch(form, account) is not None


def random_ibans(country: str, count: int) -> Iterator[str]:
    rng = random.Random(country)  # noqa: S311  reproducible, not for security
    parts = re.findall(r"([0-9]+)!([nac])", REGISTRY[country])
    for _ in range(count):
        yield iban(country, "".join(rng.choice(CHARACTERS[kind]) for length, kind in parts for _ in range(int(length))))


def in_fours(text: str) -> str:
    return " ".join(re.findall(".{1,4}", text))


def is_refused(text: str) -> bool:
    return bool(find_in_text(text)) or has_clear_card_number(text)


def test_registry_has_89_countries() -> None:
    assert len(REGISTRY) == 89


@pytest.mark.parametrize("country", REGISTRY)
def test_iban_is_no_card_number(country: str) -> None:
    texts = [
        text
        for account in random_ibans(country, 100)
        for text in (account, in_fours(account), f"Paid from IBAN: {in_fours(account)} by A. Baker, 12.50 EUR")
    ]

    assert list(filter(is_refused, texts)) == []


@pytest.mark.parametrize("change", [-4, -1, 1, 4])
def test_card_number_in_an_iban_of_another_length_is_refused(change: int) -> None:
    lengths = {country: length_of(country) + change for country in REGISTRY}
    accounts = [iban(country, CARD.ljust(length, "0")) for country, length in lengths.items() if length >= len(CARD)]

    assert len(accounts) > 40
    assert list(filterfalse(is_refused, map(in_fours, accounts))) == []


@pytest.mark.parametrize("before", ["", "1234 ", "1234 5670 "])
def test_card_number_behind_the_start_of_an_iban_is_refused(before: str) -> None:
    account = f"{before}{in_fours(CARD)}"
    digits = account.replace(" ", "")
    proven = {in_fours(iban(country, digits)) for country in REGISTRY if may_be(country, digits)}
    texts = [f"{country}{check_digits:02} {account}" for country in REGISTRY for check_digits in range(2, 99)]

    assert set(filterfalse(is_refused, texts)) == proven


@pytest.mark.parametrize(("country", "length"), [("AT", 16), ("DE", 18), ("FR", 23), ("EG", 25)])
def test_card_number_in_an_iban_with_wrong_check_digits_is_refused(country: str, length: int) -> None:
    account = iban(country, CARD.ljust(length, "0"))
    others = [f"{country}{check_digits:02}{account[4:]}" for check_digits in range(2, 99)]
    others.remove(account)

    assert not is_refused(in_fours(account))
    assert list(filterfalse(is_refused, map(in_fours, others))) == []


@pytest.mark.parametrize("check_digits", ["00", "01", "99"])
def test_check_digits_that_no_iban_has_prove_nothing(check_digits: str) -> None:
    accounts = (f"{CARD}{number:02}" for number in range(97))
    texts = [f"DE{check_digits}{account}" for account in accounts if numeric(f"{account}DE{check_digits}") % 97 == 1]

    assert len(texts) == 1
    assert is_refused(in_fours(*texts))
