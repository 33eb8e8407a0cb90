"""Charts are drawn to scale, with round numbers on the axis and marks at weeks, months or half years."""

from datetime import date

import pytest

from payments.admin.overview.charts import Part, axis_texts, money_chart, round_up
from payments.admin.periods import Period

pytestmark = pytest.mark.once


def parts(*amounts: int, compared: tuple[int, ...] = ()) -> list[Part]:
    """Return a part for each amount: the days from 2 November 2026, which is a Monday."""
    days = Period(date(2026, 11, 2), date(2026, 11, 30)).divided_by("day")[: len(amounts)]
    day = Period(date(2026, 10, 5), date(2026, 10, 5))
    before: list[tuple[Period | None, int]] = [(day, amount) for amount in compared]
    before += [(None, 0)] * (len(amounts) - len(compared))
    return [Part(part, paid, "?", *compared, "") for part, paid, compared in zip(days, amounts, before, strict=True)]


@pytest.mark.parametrize(
    ("hundredths", "top"),
    [
        (0, 100),
        (100, 100),
        (101, 200),
        (201, 300),
        (301, 400),
        (401, 600),
        (601, 800),
        (801, 1000),
        (1_360_000, 2_000_000),
        (226_000, 300_000),
        (10**18 + 1, 2 * 10**18),
    ],
)
def test_full_height_stands_for_a_round_amount(hundredths: int, top: int) -> None:
    assert round_up(hundredths) == top


@pytest.mark.parametrize(
    ("top", "texts"),
    [
        (100, ["1", "0.5", "0"]),
        (250, ["2.5", "1.25", "0"]),
        (2_000_000, ["20,000", "10,000", "0"]),
        (10**8, ["1 M", "0.5 M", "0"]),
        (25 * 10**11, ["25,000 M", "12,500 M", "0"]),
    ],
)
def test_axis_has_three_round_numbers(top: int, texts: list[str]) -> None:
    assert axis_texts(top) == texts


def test_bars_are_side_by_side_and_as_high_as_their_amounts() -> None:
    chart = money_chart(parts(0, 1, 500, 1000, -5), unit="day")

    assert [top for _, _, top in chart.bars] == [100, 99, 50, 0, 100]
    assert [left for _, left, _ in chart.bars] == [0, 20, 40, 60, 80]
    assert chart.width == 20


def test_line_shows_the_compared_amounts_at_the_middle_of_the_columns() -> None:
    chart = money_chart(parts(100, 100, 100, compared=(1000, -7)), unit="day")

    assert chart.line == "16.67,0.0 50.00,100.0"
    assert chart.axis == ["10", "5", "0"]


def test_chart_without_comparison_has_no_line() -> None:
    assert money_chart(parts(100, 100), unit="day").line == ""


@pytest.mark.parametrize(
    ("first", "last", "marks", "labels"),
    [
        ("2026-11-24", "2026-11-27", 4, ["24 Nov", "25 Nov", "26 Nov", "27 Nov"]),
        ("2026-11-01", "2026-11-30", 5, ["2 Nov", "9 Nov", "16 Nov", "23 Nov", "30 Nov"]),
        ("2026-09-01", "2026-11-30", 13, ["7 Sep", "28 Sep", "19 Oct", "9 Nov", "30 Nov"]),
        ("2026-01-01", "2026-11-30", 11, ["Jan", "Mar", "May", "Jul", "Sep", "Nov"]),
        ("2024-03-01", "2026-11-30", 5, ["Jul 2024", "Jan 2025", "Jul 2025", "Jan 2026", "Jul 2026"]),
    ],
)
def test_marks_are_at_mondays_months_or_half_years(first: str, last: str, marks: int, labels: list[str]) -> None:
    period = Period(date.fromisoformat(first), date.fromisoformat(last))

    all_parts = [Part(part, 1, "?", None, 0, "") for part in period.divided_by(period.part_unit)]
    chart = money_chart(all_parts, unit=period.part_unit)

    assert len(chart.ticks) == marks
    assert [label for _, label in chart.ticks if label] == labels
    assert all(0 < x < 100 for x, _ in chart.ticks)


def test_days_are_named_with_their_weekday() -> None:
    [part] = parts(1, compared=(2,))

    assert (str(part), part.compared_text) == ("Mon 2 November 2026", "Mon 5 October 2026")
