"""Migrations of a database whose payments Citus distributes. tests/citus/test_upgrades.py migrates one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.test.utils import CaptureQueriesContext

from tests.support.connecting import connected_to
from tests.support.migrated import empty_database

# What Citus can change in a distributed table, from the hint of the error that it raises for anything else.
ACCEPTED: Final = re.compile(
    r"(ADD|DROP) COLUMN |(ADD|DROP|VALIDATE) CONSTRAINT |(SET|RESET) \(|(DISABLE|ENABLE|NO FORCE|FORCE) ROW LEVEL "
    r'|ALTER COLUMN "?\w+"? ((SET|DROP) (NOT NULL|DEFAULT)|TYPE )'
)

# Runs before a table can be distributed.
FIRST_MIGRATION: Final = "0001_initial"

# Skips its ALTER TABLE if the table is distributed.
GUARDED: Final = {"0006_largest_organization"}


def refused_changes(sql: str) -> list[str]:
    """Return the changes of a table in these statements that Citus refuses."""
    return [
        change
        for statement in sql.split(";")
        if (parts := re.match(r'\s*ALTER TABLE "?\w+"? (.*)', statement, re.DOTALL))
        for change in split_at_commas(parts[1])
        if not ACCEPTED.match(change)
    ]


def split_at_commas(text: str) -> Iterator[str]:
    """Yield the parts between commas that are neither in parentheses nor in quotes."""
    for part in re.split(r",\s*(?=(?:ADD|DROP|VALIDATE|ALTER|SET|RESET|ENABLE|DISABLE|CLUSTER|RENAME)\b)", text):
        yield part.strip()


def statements_of_migration(name: str) -> str:
    with CaptureQueriesContext(connection) as queries:
        call_command("migrate", "payments", name, verbosity=0)
    return ";".join(query["sql"] for query in queries)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[None]:
    with empty_database(tmp_path) as url, connected_to(url):
        yield


def test_citus_accepts_every_change_of_a_table(empty: None) -> None:
    names = sorted(name for app, name in MigrationLoader(None).disk_migrations if app == "payments")
    statements = {name: statements_of_migration(name) for name in names}

    refused = {name: refused_changes(sql) for name, sql in statements.items() if name != FIRST_MIGRATION}

    assert {name for name, changes in refused.items() if changes} == GUARDED
    assert any("ADD COLUMN" in sql for sql in statements.values())


@pytest.mark.parametrize(
    "change",
    [
        "ALTER COLUMN organization_id SET (n_distinct = 1)",
        "ALTER COLUMN method SET STATISTICS 1000",
        "ALTER COLUMN method SET STORAGE external",
        "ADD COLUMN risk integer, CLUSTER ON payment_list",
        "RENAME COLUMN method TO means",
        "SET UNLOGGED",
    ],
)
def test_change_that_citus_refuses_is_detected(change: str) -> None:
    assert len(refused_changes(f"SELECT 1; ALTER TABLE payments_payment {change}")) == 1


def test_transaction_of_a_migration_changes_shards_one_after_the_other(empty: None) -> None:
    statements = statements_of_migration("0001_initial").split(";")

    is_change = re.compile("CREATE TABLE|ALTER TABLE")
    first_change = next(number for number, sql in enumerate(statements) if '"payments_' in sql and is_change.match(sql))
    assert "SET LOCAL citus.multi_shard_modify_mode = 'sequential'" in statements[:first_change]
