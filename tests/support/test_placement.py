"""The list of where tests run."""

import pytest

from tests.support.placement import databases, missing


def test_every_entry_names_a_module_or_a_test() -> None:
    assert list(missing()) == []


@pytest.mark.parametrize(
    ("path", "vendors"),
    [
        ("test_list.py::test_x", {"sqlite", "postgresql"}),
        ("database/test_backup.py::test_x", {"sqlite"}),
        ("database/test_backup.py::test_command_on_postgresql_names_its_tools", {"postgresql"}),
        ("database/test_replicas.py::test_x", {"postgresql"}),
        ("browser/test_admin.py::test_x", {"sqlite"}),
    ],
)
def test_a_tests_own_entry_counts_more_than_its_modules(path: str, vendors: set[str]) -> None:
    assert databases(path) == vendors
