from django.db import migrations

# The statements of a list have one generic plan for all organizations. With n_distinct = 1, PostgreSQL estimates the rows
# of the largest organization, not of an average one: for an average one, it would read and sort all payments to find the
# start of a page. The setting takes effect with the next ANALYZE.
#
# A table that Citus distributes cannot have the setting, and needs none: there each plan is made for its values.
EXPECT_LARGEST = """
    ALTER TABLE payments_payment ALTER COLUMN organization_id SET (n_distinct = 1);
    ANALYZE payments_payment (organization_id)
"""
EXPECT_AVERAGE = """
    ALTER TABLE payments_payment ALTER COLUMN organization_id RESET (n_distinct);
    ANALYZE payments_payment (organization_id)
"""


def on_postgresql(sql):
    def execute(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql" and not is_distributed(schema_editor.connection):
            schema_editor.execute(sql)

    return execute


def is_distributed(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pg_dist_partition')")
        if cursor.fetchone()[0] is None:
            return False
        cursor.execute("SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'payments_payment'::regclass)")
        return cursor.fetchone()[0]


class Migration(migrations.Migration):

    dependencies = [
        ('payments', '0005_revision'),
    ]

    operations = [
        migrations.RunPython(on_postgresql(EXPECT_LARGEST), on_postgresql(EXPECT_AVERAGE)),
    ]
