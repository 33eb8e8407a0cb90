"""`distribute_payments` without Citus: it names the missing precondition. tests/citus tests it with Citus."""

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

pytestmark = [pytest.mark.django_db, pytest.mark.only("postgresql")]


def primary_key() -> list[str] | None:
    with connection.cursor() as cursor:
        return connection.introspection.get_primary_key_columns(cursor, "payments_payment")


def test_database_without_citus_is_refused() -> None:
    with pytest.raises(CommandError, match=r"has no Citus.*CREATE EXTENSION citus"):
        call_command("distribute_payments")

    assert primary_key() == ["id"]


def test_database_with_unapplied_migrations_is_refused() -> None:
    MigrationRecorder(connection).migration_qs.filter(app="payments").latest("applied").delete()

    with pytest.raises(CommandError, match=r"manage\.py migrate"):
        call_command("distribute_payments")

    assert primary_key() == ["id"]


@pytest.mark.only("sqlite")
def test_sqlite_is_refused() -> None:
    with pytest.raises(CommandError, match="This database is SQLite"):
        call_command("distribute_payments")
