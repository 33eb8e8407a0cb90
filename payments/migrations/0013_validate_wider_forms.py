"""Validate the constraints of the migration before. PostgreSQL reads the table and blocks neither readers nor writers."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Validate(ValidateConstraint):
    """Validate a constraint on PostgreSQL. On SQLite, constraints are always valid."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == 'postgresql':
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):

    dependencies = [
        ('payments', '0012_wider_forms'),
    ]

    operations = [
        Validate(model_name='payment', name='payment_id_form'),
        Validate(model_name='payment', name='payment_method_form'),
        Validate(model_name='payment', name='payment_customer_id_form'),
    ]
