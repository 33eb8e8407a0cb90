"""Old code serves on a new schema, and new code says what an old one lacks: so a release can come step by step."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models.fields import NOT_PROVIDED

from payments.service.health import latest_migrations
from tests.support.load import Load
from tests.support.migrated import empty_database, fresh_database
from tests.support.service import Service

# These came before tables were full.
INITIAL = {"0001_initial", "0002_forms_without_counts", "0003_filters", "0004_totals"}

# Whoever writes SQL or Python answers for it.
ADDING = (
    *(migrations.CreateModel, migrations.AddField, migrations.AddIndex, migrations.AddConstraint),
    *(migrations.RemoveConstraint, migrations.RunPython, migrations.RunSQL),
)

# They read a whole table, whose writers wait meanwhile; those of django.contrib.postgres that do not inherit from them.
READING_ALL = (migrations.AddIndex, migrations.AddConstraint)

LATER = (
    "ALTER TABLE payments_payment ADD COLUMN risk integer NOT NULL DEFAULT 0",
    "ALTER TABLE payments_apikey ADD COLUMN scope varchar(9) NOT NULL DEFAULT 'read'",
    "ALTER TABLE payments_organization ADD COLUMN note text NULL",
    "CREATE TABLE payments_refund (id integer PRIMARY KEY)",
    "INSERT INTO django_migrations (app, name, applied) VALUES ('payments', '9999_later', '2026-01-01T00:00:00+00:00')",
)


def faults(operations: Sequence[Operation]) -> list[str]:
    """Return what old code would stumble over, or wait for, while these are carried out and afterwards."""
    made = {operation.name_lower for operation in operations if isinstance(operation, migrations.CreateModel)}
    return [
        f"{operation.describe()}: {fault}"
        for operation in operations
        if (fault := fault_of(operation)) and getattr(operation, "model_name_lower", None) not in made
    ]


def fault_of(operation: Operation) -> str | None:
    if not isinstance(operation, ADDING):
        return "adds nothing"
    if isinstance(operation, migrations.AddField) and not may_be_left_out(operation.field):
        return "old code inserts rows without it"
    if type(operation) in READING_ALL:
        return "locks the table while it reads all of it"
    return None


def may_be_left_out(field: "models.Field[Any, Any]") -> bool:
    return field.null or field.db_default is not NOT_PROVIDED


def test_a_migration_only_adds_and_locks_no_table_for_long() -> None:
    found = {
        name: faults(migration.operations)
        for (app, name), migration in MigrationLoader(None).disk_migrations.items()
        if app == "payments" and name not in INITIAL
    }

    assert {name: words for name, words in found.items() if words} == {}


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
    ],
)
def test_a_migration_that_old_code_would_stumble_over_is_found_out(operation: Operation) -> None:
    assert len(faults([operation])) == 1


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
def test_a_migration_that_adds_what_old_code_can_leave_out_is_none(operations: list[Operation]) -> None:
    assert faults(operations) == []


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


def executed(service: Service, statements: tuple[str, ...]) -> None:
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


def test_a_service_that_runs_already_is_told_what_to_wait_for_and_serves_once_it_is_there(empty: Service) -> None:
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


def test_a_service_goes_on_while_the_schema_becomes_a_later_one_and_starts_on_it(filled: Service) -> None:
    key = filled.create_api_key(organization=1001, mode="live")
    exported = filled.exported()
    with filled.serving() as service, Load(service.port, key).running(2) as load:
        executed(service, LATER)
        load.wait_for(200, after=time.monotonic())

    assert {answer.status for answer in load.responses} == {200}
    with filled.serving() as service:
        assert ready(service)[0] == 200
        assert Load(service.port, key).get().status == 200
    changed = exported.replace('"description":"', '"description":"again ')
    filled.import_records(changed.encode().splitlines())
    assert filled.exported() == changed
    assert filled.create_api_key(organization=1001, mode="live")
