"""Rolling upgrades: old code works with a new schema, and new code reports a missing migration."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models.fields import NOT_PROVIDED

from payments.database.migration_state import latest_migrations
from tests.support.load import Load
from tests.support.migrated import empty_database, fresh_database
from tests.support.service import Service

# Migrations from before the first large tables.
INITIAL = {"0001_initial", "0002_forms_without_counts", "0003_filters", "0004_totals"}

# Operations that old code can work with. Review RunPython and RunSQL yourself.
COMPATIBLE = (
    *(migrations.CreateModel, migrations.AddField, migrations.AddIndex, migrations.AddConstraint),
    *(migrations.RemoveConstraint, ValidateConstraint, migrations.RunPython, migrations.RunSQL),
)

# Operations that block writers while they read a table. The concurrent ones of django.contrib.postgres are subclasses.
BLOCKING = (migrations.AddIndex, migrations.AddConstraint)

LATER_SCHEMA = (
    "ALTER TABLE payments_payment ADD COLUMN risk integer NOT NULL DEFAULT 0",
    "ALTER TABLE payments_apikey ADD COLUMN scope varchar(9) NOT NULL DEFAULT 'read'",
    "ALTER TABLE payments_organization ADD COLUMN note text NULL",
    "CREATE TABLE payments_refund (id integer PRIMARY KEY)",
    "INSERT INTO django_migrations (app, name, applied) VALUES ('payments', '9999_later', '2026-01-01T00:00:00+00:00')",
)


def problems(operations: Sequence[Operation]) -> list[str]:
    """Return why old code would fail or wait, during these operations or afterwards."""
    changes = list(chain.from_iterable(map(database_operations, operations)))
    new_models = {operation.name_lower for operation in changes if isinstance(operation, migrations.CreateModel)}
    return [
        f"{operation.describe()}: {problem}"
        for operation in changes
        if (problem := problem_of(operation)) and getattr(operation, "model_name_lower", None) not in new_models
    ]


def database_operations(operation: Operation) -> Sequence[Operation]:
    """Return the operations that change the database. An operation may change only the state of the models."""
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        return list(chain.from_iterable(map(database_operations, operation.database_operations)))
    return [operation]


def problem_of(operation: Operation) -> str | None:
    if not isinstance(operation, COMPATIBLE):
        return "old code may use what it changes"
    if isinstance(operation, migrations.AddField) and not is_optional(operation.field):
        return "old code inserts rows without it"
    if type(operation) in BLOCKING:
        return "locks the table while it reads all of it"
    return None


def is_optional(field: "models.Field[Any, Any]") -> bool:
    return field.null or field.db_default is not NOT_PROVIDED


def test_migrations_are_compatible_with_old_code() -> None:
    problems_of_migrations = {
        name: problems(migration.operations)
        for (app, name), migration in MigrationLoader(None).disk_migrations.items()
        if app == "payments" and name not in INITIAL
    }

    assert {name: texts for name, texts in problems_of_migrations.items() if texts} == {}


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("payment", "method"),
        migrations.RenameField("payment", "method", "means"),
        migrations.AlterField("payment", "method", models.CharField(max_length=16)),
        migrations.DeleteModel("SummedDay"),
        migrations.RenameModel("SummedDay", "Sum"),
        migrations.RemoveIndex("payment", "payment_list"),
        migrations.AddField("payment", "risk", models.IntegerField()),
        migrations.AddField("payment", "risk", models.IntegerField(default=0)),
        migrations.AddIndex("payment", models.Index(fields=["method"], name="payment_method")),
        migrations.SeparateDatabaseAndState(database_operations=[migrations.RemoveField("payment", "method")]),
    ],
)
def test_incompatible_operation_is_detected(operation: Operation) -> None:
    assert len(problems([operation])) == 1


@pytest.mark.parametrize(
    "operations",
    [
        [migrations.AddField("payment", "risk", models.IntegerField(null=True))],
        [migrations.AddField("payment", "risk", models.IntegerField(db_default=0))],
        [
            migrations.CreateModel("Refund", [("id", models.BigAutoField(primary_key=True))]),
            migrations.AddIndex("refund", models.Index(fields=["id"], name="refund_id")),
        ],
    ],
)
def test_optional_additions_are_compatible(operations: list[Operation]) -> None:
    assert problems(operations) == []


def test_operation_that_leaves_the_database_as_it_is_is_compatible() -> None:
    removal = migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("payment", "method")])

    assert problems([removal]) == []


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Service]:
    with empty_database(tmp_path) as url:
        yield Service(url, log=tmp_path / "log")


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Service]:
    with fresh_database(tmp_path) as url:
        service = Service(url, log=tmp_path / "log")
        service.create_demo_payments(100)
        yield service


def ready(service: Service) -> tuple[int, str]:
    load = Load(service.port, "", path="/readyz")
    connection = load.connection()
    connection.request("GET", "/readyz")
    response = connection.getresponse()
    status, body = response.status, response.read().decode()
    connection.close()
    return status, body


def execute(service: Service, statements: tuple[str, ...]) -> None:
    url = service.database_url
    connect: Callable[[], Any] = (
        (lambda: sqlite3.connect(url.removeprefix("sqlite:///")))
        if url.startswith("sqlite")
        else (lambda: psycopg.connect(url))
    )
    with closing(connect()) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_running_service_is_ready_after_the_migration(empty: Service) -> None:
    empty.migrate("payments", "0004")
    for app in ("admin", "auth", "contenttypes", "sessions"):
        empty.migrate(app)
    with empty.serving() as service:
        before = ready(service)
        service.migrate()
        after = ready(service)

    (latest,) = (name for app, name in latest_migrations() if app == "payments")
    assert before == (503, f'{{"status": "Not migrated: payments.{latest}."}}')
    assert after == (200, '{"status": "ok"}')


def test_service_works_with_a_later_schema(filled: Service) -> None:
    key = filled.create_api_key(organization=1001, mode="live")
    exported = filled.exported()
    with filled.serving() as service, Load(service.port, key).running(2) as load:
        execute(service, LATER_SCHEMA)
        load.wait_for(200, after=time.monotonic())

    assert {answer.status for answer in load.responses} == {200}
    with filled.serving() as service:
        assert ready(service)[0] == 200
        assert Load(service.port, key).get().status == 200
    changed = exported.replace('"description":"', '"description":"again ')
    filled.import_records(changed.encode().splitlines())
    assert filled.exported() == changed
    assert filled.create_api_key(organization=1001, mode="live")
