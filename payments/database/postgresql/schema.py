"""The schema editor of the PostgreSQL backend."""

from typing import Self

from django.db.backends.postgresql.schema import DatabaseSchemaEditor as PostgresqlSchemaEditor

from payments.database.postgresql.citus import SEQUENTIAL


class DatabaseSchemaEditor(PostgresqlSchemaEditor):
    """Django's schema editor, whose transactions can also change distributed and reference tables together."""

    def __enter__(self) -> Self:
        super().__enter__()
        if self.atomic_migration and not self.collect_sql:
            self.execute(SEQUENTIAL)
        return self
