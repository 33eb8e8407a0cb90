"""The list of the databases that each test runs on."""

import pytest

from tests.support.placement import databases, unknown_entries


def test_every_entry_names_an_existing_module_or_test() -> None:
    assert list(unknown_entries()) == []


@pytest.mark.parametrize(
    ("path", "vendors"),
    [
        ("test_list.py::test_x", {"sqlite", "postgresql"}),
        ("database/test_backup.py::test_x", {"sqlite"}),
        ("database/test_backup.py::test_command_on_postgresql_names_its_tools", {"postgresql"}),
        ("database/test_replicas.py::test_x", {"postgresql"}),
        ("browser/test_admin.py::test_x", {"sqlite"}),
        ("citus/test_cluster.py::test_x", {"citus"}),
        ("api/test_list.py::test_x", {"sqlite", "postgresql", "citus"}),
        (
            "ingest/test_imports.py::test_payment_of_another_organization_is_refused_and_unchanged",
            {"sqlite", "postgresql"},
        ),
    ],
)
def test_entry_of_a_test_overrides_the_entry_of_its_module(path: str, vendors: set[str]) -> None:
    assert databases(path) == vendors
