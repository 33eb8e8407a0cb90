"""Changes the schema, also that of tables which Citus distributes (docs/citus.md)."""

from typing import Self

from django.db.backends.postgresql.schema import DatabaseSchemaEditor as PostgresqlSchemaEditor

# Without Citus, PostgreSQL ignores settings with this prefix.
ONE_CONNECTION = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"


class DatabaseSchemaEditor(PostgresqlSchemaEditor):
    """Django's schema editor, whose transactions may change distributed and reference tables together.

    Citus would otherwise change the shards of a server in parallel, through several connections. In the same
    transaction it then refuses foreign keys to a reference table.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        if self.atomic_migration and not self.collect_sql:
            self.execute(ONE_CONNECTION)
        return self
