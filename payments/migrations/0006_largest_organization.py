from django.db import migrations

# The statements of a list have one generic plan for all organizations. With n_distinct = 1, PostgreSQL estimates the rows
# of the largest organization, not of an average one: for an average one, it would read and sort all payments to find the
# start of a page. The setting takes effect with the next ANALYZE.
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
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(sql)

    return execute


class Migration(migrations.Migration):

    dependencies = [
        ('payments', '0005_revision'),
    ]

    operations = [
        migrations.RunPython(on_postgresql(EXPECT_LARGEST), on_postgresql(EXPECT_AVERAGE)),
    ]
