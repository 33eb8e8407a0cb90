"""Numbers drawn to scale."""

import pytest

from payments.admin.charts import Column, Columns, Line, columns, line


@pytest.mark.parametrize(
    ("number", "top"), [(0, 1), (1, 1), (2, 2), (3, 5), (5, 5), (6, 10), (11, 20), (21, 50), (51, 100), (501, 1000)]
)
def test_the_height_stands_for_a_round_number(number: int, top: int) -> None:
    assert columns([0], [number], [""]).top == top


def test_bars_stand_side_by_side_as_high_as_their_numbers() -> None:
    drawn = columns([0, 1, 5], [0, 4, 10], ["a", "b", "c"])

    assert drawn == Columns(
        [Column(1, 8, 0, 0, "a"), Column(11, 8, 400, 100, "b"), Column(21, 8, 1000, 500, "c")], 30, 10
    )


def test_what_is_next_to_nothing_can_be_seen() -> None:
    assert columns([0, 1], [100_000, 1], ["", ""]).columns[1].whole == 10


def test_what_was_given_back_has_no_height() -> None:
    assert columns([-5], [-5], [""]).columns[0].whole == 0


def test_a_line_breaks_off_where_there_is_nothing() -> None:
    assert line([1, 0.5, None, 0, None, None]) == Line(["5,0 15,500", "33,1000 37,1000"], 60)


def test_nothing_is_no_line() -> None:
    assert line([None, None]) == Line([], 20)
