from django.db import migrations

# A list's statements are planned once for all organizations. Of a column with one value PostgreSQL expects as many rows
# as the most common one has: so it plans for the largest organization, not for an average one, of whose payments it
# would read all there are to find the one that a page begins with. It reckons with that from the next ANALYZE on.
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
