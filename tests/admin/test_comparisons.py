"""Texts that compare a figure of two periods."""

import pytest

from payments.admin.overview.figures import Change
from payments.templatetags.texts import grouped, money

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("number", "before", "change"),
    [
        (9, 8, ("up", "12.5 %", "8")),
        (7, 8, ("down", "12.5 %", "8")),
        (8, 8, ("", "0.0 %", "8")),
        (0, 8, ("down", "100.0 %", "8")),
        (100_000, 1, ("up", "9,999,900.0 %", "1")),
        (10_001, 10_000, ("", "0.0 %", "10,000")),
        (9_994, 10_000, ("down", "0.1 %", "10,000")),
        (0, 0, ("", "", "0")),
        (5, 0, ("", "", "0")),
    ],
)
def test_numbers_are_compared_in_percent(number: int, before: int, change: tuple[str, str, str]) -> None:
    assert Change.in_percent(number, before, text=grouped) == change


@pytest.mark.parametrize(
    ("hundredths", "before", "change"),
    [
        (150, 100, ("up", "50.0 %", "1.00")),
        (-50, 100, ("down", "150.0 %", "1.00")),
        (10**18 + 1, 10**18, ("", "0.0 %", "10,000,000,000,000,000.00")),
        (5, -123_456, ("", "", "-1,234.56")),
    ],
)
def test_amounts_are_compared_in_percent_of_a_positive_amount(
    hundredths: int, before: int, change: tuple[str, str, str]
) -> None:
    assert Change.in_percent(hundredths, before, text=money) == change


@pytest.mark.parametrize(
    ("difference", "change"),
    [(1.5, ("up", "1.5 points")), (-100.0, ("down", "100.0 points")), (0.04, ("", "0.0 points")), (None, ("", ""))],
)
def test_rates_are_compared_in_points(difference: float | None, change: tuple[str, str]) -> None:
    assert Change.of(difference, unit="points", before="80.0 %") == (*change, "80.0 %")
