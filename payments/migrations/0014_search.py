"""Index the search terms of payments. The index of the start of descriptions is not needed any more.

Until all processes run the new code, the admin of the old code reads the list for a search in descriptions.
"""

from django.db import migrations

from payments.database.sqlite import search_index
from payments.search_terms import HasSearchTerms, terms_sql

TABLE = "payments_payment"

# An interrupted CREATE INDEX CONCURRENTLY leaves an invalid index, so a repetition begins with DROP. Statistics of the
# terms would not be used.
CREATE = (
    "DROP INDEX CONCURRENTLY IF EXISTS payment_search",
    f"CREATE INDEX CONCURRENTLY payment_search ON payments_payment USING gin (({terms_sql(**{name: name for name in HasSearchTerms.columns})}))",
    "ALTER INDEX payment_search ALTER COLUMN 1 SET STATISTICS 0",
    "DROP INDEX CONCURRENTLY IF EXISTS payment_description",
)
UNDO = (
    'CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_description ON payments_payment '
    '(organization_id, mode, (left(description, 64) COLLATE "C"))',
    "DROP INDEX CONCURRENTLY IF EXISTS payment_search",
)
CREATE_ON_SQLITE = ("DROP INDEX IF EXISTS payment_description", *search_index.DROP, *search_index.create_statements(TABLE))
UNDO_ON_SQLITE = (
    "CREATE INDEX payment_description ON payments_payment (organization_id, mode, substr(description, 1, 64))",
    *search_index.DROP,
)


def create(apps, schema_editor):
    execute(schema_editor, CREATE, CREATE_ON_SQLITE)
    search_index.index_new_payments(TABLE, schema_editor.connection.alias)
    search_index.merge_parts(schema_editor.connection.alias)


def undo(apps, schema_editor):
    execute(schema_editor, UNDO, UNDO_ON_SQLITE)


def execute(schema_editor, on_postgresql, on_sqlite):
    statements = on_postgresql if schema_editor.connection.vendor == "postgresql" else on_sqlite
    for statement in statements:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    atomic = False  # CREATE INDEX CONCURRENTLY allows no transaction

    dependencies = [
        ('payments', '0013_validate_wider_forms'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(create, undo)],
            state_operations=[migrations.RemoveIndex(model_name='payment', name='payment_description')],
        ),
    ]
