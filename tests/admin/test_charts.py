"""Charts are drawn to scale."""

import pytest

from payments.admin.overview.charts import (
    Bar,
    BarChart,
    Label,
    LineChart,
    bar_chart,
    line_chart,
)

pytestmark = pytest.mark.once


def labels(count: int) -> list[Label]:
    return [Label(f"day {number}", f"?day={number}") for number in range(count)]


@pytest.mark.parametrize(
    ("number", "top"), [(0, 1), (1, 1), (2, 2), (3, 5), (5, 5), (6, 10), (11, 20), (21, 50), (51, 100), (501, 1000)]
)
def test_full_height_stands_for_a_round_number(number: int, top: int) -> None:
    assert bar_chart([number], parts=[0], labels=labels(1)).top == top


def test_bars_are_side_by_side_and_as_high_as_their_numbers() -> None:
    chart = bar_chart([0, 4, 10], parts=[0, 1, 5], labels=labels(3))

    bars = [Bar(1, 8, 0, 0), Bar(11, 8, 400, 100), Bar(21, 8, 1000, 500)]
    assert chart == BarChart(bars, labels(3), width=30, top=10)


def test_small_number_has_a_visible_bar() -> None:
    chart = bar_chart([100_000, 1], parts=[0, 1], labels=labels(2))

    assert chart.bars[1].height == 10


def test_negative_number_has_no_bar() -> None:
    chart = bar_chart([-5], parts=[-5], labels=labels(1))

    assert chart.bars[0].height == 0


def test_line_is_interrupted_where_a_value_is_missing() -> None:
    chart = line_chart([1, 0.5, None, 0, None, None], labels=labels(6))

    assert chart == LineChart(["5,0 15,500", "31,1000 39,1000"], labels(6), width=60)


def test_line_without_data_has_no_segments() -> None:
    assert line_chart([None, None], labels=labels(2)) == LineChart([], labels(2), width=20)
