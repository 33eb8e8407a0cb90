from django.db import migrations, models

INDEXES = [
    models.Index(condition=models.Q(('change_id__isnull', True)), fields=['organization', 'mode', 'change_id', 'id'], name='payment_unchanged'),
    models.Index(fields=['change_id', 'organization', 'mode'], name='payment_change'),
]


def create(apps, schema_editor):
    drop(apps, schema_editor)  # an interrupted CREATE INDEX CONCURRENTLY leaves an invalid index
    options = {'concurrently': True} if is_postgresql(schema_editor) else {}
    for index in INDEXES:
        schema_editor.add_index(apps.get_model('payments', 'Payment'), index, **options)


def drop(apps, schema_editor):
    for index in INDEXES:
        concurrently = 'CONCURRENTLY' if is_postgresql(schema_editor) else ''
        schema_editor.execute(f'DROP INDEX {concurrently} IF EXISTS {index.name}')


def is_postgresql(schema_editor):
    return schema_editor.connection.vendor == 'postgresql'


class Migration(migrations.Migration):
    atomic = False  # CREATE INDEX CONCURRENTLY allows no transaction

    dependencies = [
        ('payments', '0010_changes'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(create, drop)],
            state_operations=[migrations.AddIndex(model_name='payment', index=index) for index in INDEXES],
        ),
    ]
