"""IDs and methods may have more characters. Every stored payment meets the new constraints, because it met the old ones.

PostgreSQL does not read the table here: the next migration validates the constraints without blocking anything. SQLite
copies the table for each change of a constraint. So only one operation changes the database there: it copies the table
with all constraints of the resulting model.
"""

import django.db.models.functions.text
import django.db.models.lookups
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


def is_postgresql(schema_editor):
    return schema_editor.connection.vendor == 'postgresql'


class OnPostgreSQL:
    """Change the database only if it is PostgreSQL, but the state of the models in any case."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if is_postgresql(schema_editor):
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        if is_postgresql(schema_editor):
            super().database_backwards(app_label, schema_editor, from_state, to_state)


class Remove(OnPostgreSQL, migrations.RemoveConstraint):
    pass


class Add(OnPostgreSQL, AddConstraintNotValid):
    pass


class RemoveFirst(Remove):
    """Remove the first constraint. To go back is the last step then: on SQLite, it copies the table."""

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        migrations.RemoveConstraint.database_backwards(self, app_label, schema_editor, from_state, to_state)


class AddLast(Add):
    """Add the last constraint; on SQLite, copy the table."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if is_postgresql(schema_editor):
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        else:
            migrations.AddConstraint.database_forwards(self, app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):

    dependencies = [
        ('payments', '0011_change_indexes'),
    ]

    operations = [
        RemoveFirst(model_name='payment', name='payment_id_form'),
        Remove(model_name='payment', name='payment_method_form'),
        Remove(model_name='payment', name='payment_customer_id_form'),
        Add(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('id__regex', '\\Apt_[A-Za-z0-9_-]+\\Z'), django.db.models.lookups.LessThanOrEqual(django.db.models.functions.text.Length('id'), 64)), name='payment_id_form'),
        ),
        Add(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('method', ''), models.Q(('method__regex', '\\A[A-Za-z0-9_-]+\\Z'), django.db.models.lookups.LessThanOrEqual(django.db.models.functions.text.Length('method'), 32)), _connector='OR'), name='payment_method_form'),
        ),
        AddLast(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('customer_id', ''), models.Q(('customer_id__regex', '\\Act_[A-Za-z0-9_-]+\\Z'), django.db.models.lookups.LessThanOrEqual(django.db.models.functions.text.Length('customer_id'), 64)), _connector='OR'), name='payment_customer_id_form'),
        ),
    ]
