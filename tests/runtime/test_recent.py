"""A dictionary of limited size keeps the values that were set last."""

import pytest

from payments.runtime.recent import RecentValues


@pytest.mark.parametrize(("names", "kept"), [("abc", "bc"), ("aab", "ab"), ("abac", "bc"), ("a", "a"), ("", "")])
def test_oldest_value_is_removed(names: str, kept: str) -> None:
    values: RecentValues[str, int] = RecentValues(2)
    for name in names:
        values.set(name, 1)

    assert "".join(values.values) == kept


def test_changed_value_is_the_newest() -> None:
    values: RecentValues[str, int] = RecentValues(2)
    for name, value in (("a", 1), ("b", 1), ("a", 2), ("c", 1)):
        values.set(name, value)

    assert values.values == {"a": 2, "c": 1}


def test_removed_value_is_unknown() -> None:
    values: RecentValues[str, int] = RecentValues(2)
    values.set("a", 1)
    values.remove("a")
    values.remove("b")

    assert values.get("a") is None
