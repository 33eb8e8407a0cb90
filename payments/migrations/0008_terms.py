from django.db import migrations

# The GIN index of payments/terms.py. It replaces `payment_holds`, whose entries and statistics mixed the values of all
# organizations. Until all processes run the new code, the old code reads the list for filters by metadata, method,
# sequence type and currency.
#
# An interrupted CREATE INDEX CONCURRENTLY leaves an invalid index, so a repetition begins with DROP. PostgreSQL does not
# use the new index before ANALYZE has collected the statistics of its terms.
CREATE = (
    "DROP INDEX CONCURRENTLY IF EXISTS payment_terms",
    """
    CREATE INDEX CONCURRENTLY payment_terms ON payments_payment USING gin ((
        (
            string_to_array(
                organization_id::text || mode || ' ' || replace(
                    'status ' || status
                    || '", "' || 'method ' || method
                    || '", "' || 'sequence ' || sequence_type
                    || '", "' || 'currency ' || amount_currency
                    || '", "' || left(right(metadata::jsonb::text, -2), -2),
                    '", "',
                    '", "' || organization_id::text || mode || ' '
                ),
                '", "'
            )
            || CASE WHEN mod(hashtext(id), 1000) = 0 THEN ARRAY['rare'] END
        )::varchar(128)[] COLLATE "C"
    ))
    """,
    "ANALYZE payments_payment",
    "DROP INDEX CONCURRENTLY IF EXISTS payment_holds",
)
UNDO = (
    """
    CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_holds ON payments_payment
    USING gin ((metadata::jsonb) jsonb_path_ops, (ARRAY[method, sequence_type, amount_currency]::text[]))
    """,
    "ANALYZE payments_payment",
    "DROP INDEX CONCURRENTLY IF EXISTS payment_terms",
)


def on_postgresql(statements):
    def execute(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql":
            for statement in statements:
                schema_editor.execute(statement)

    return execute


class Migration(migrations.Migration):
    atomic = False  # CREATE INDEX CONCURRENTLY allows no transaction

    dependencies = [
        ('payments', '0007_key_hint_and_form'),
    ]

    operations = [
        migrations.RunPython(on_postgresql(CREATE), on_postgresql(UNDO)),
    ]
