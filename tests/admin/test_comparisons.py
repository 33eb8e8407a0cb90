"""Texts that compare a figure with the period before."""

import pytest

from payments.admin.overview.statistics import compare_amounts, compare_numbers, compare_rates


@pytest.mark.parametrize(
    ("number", "previous", "text"),
    [
        (9, 8, "Up 12.5 %"),
        (7, 8, "Down 12.5 %"),
        (8, 8, "No change"),
        (0, 8, "Down 100.0 %"),
        (100_000, 1, "Up 9,999,900.0 %"),
        (10_001, 10_000, "Up less than 0.1 %"),
        (9_999, 10_000, "Down less than 0.1 %"),
        (0, 0, "No payments before"),
        (5, 0, "No payments before"),
    ],
)
def test_numbers_are_compared_in_percent(number: int, previous: int, text: str) -> None:
    assert compare_numbers(number, previous) == text


@pytest.mark.parametrize(
    ("hundredths", "previous", "text"),
    [
        (150, 100, "Up 50.0 %"),
        (-50, 100, "Down 150.0 %"),
        (10**18 + 1, 10**18, "Up less than 0.1 %"),
        (5, 0, "0.00 before"),
        (5, -123_456, "-1,234.56 before"),
    ],
)
def test_amounts_are_compared_in_percent_of_a_positive_amount(hundredths: int, previous: int, text: str) -> None:
    assert compare_amounts(hundredths, previous) == text


@pytest.mark.parametrize(
    ("percent", "previous", "text"),
    [
        (80.0, 78.5, "Up 1.5 percentage points"),
        (0.0, 100.0, "Down 100.0 percentage points"),
        (80.0, 80.0, "No change"),
        (80.0, None, "No completed payments before"),
    ],
)
def test_rates_are_compared_in_percentage_points(percent: float, previous: float | None, text: str) -> None:
    assert compare_rates(percent, previous) == text
