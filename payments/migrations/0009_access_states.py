import django.db.models.deletion
from django.db import migrations, models

# Both modes of an organization start with its revision.
FILL = """
    INSERT INTO payments_accessstate (organization_id, mode, revision)
    SELECT id, 'live', revision FROM payments_organization
    UNION ALL SELECT id, 'test', revision FROM payments_organization
"""
# The old code has one revision for both modes. It changes if one of theirs has changed; half of each fits into a bigint.
UNDO = """
    UPDATE payments_organization SET revision = (
        SELECT sum(revision / 2) FROM payments_accessstate WHERE organization_id = payments_organization.id
    ) WHERE id IN (SELECT organization_id FROM payments_accessstate)
"""


class Migration(migrations.Migration):

    dependencies = [
        ('payments', '0008_terms'),
    ]

    operations = [
        migrations.CreateModel(
            name='AccessState',
            fields=[
                ('pk', models.CompositePrimaryKey('organization_id', 'mode', blank=True, editable=False, primary_key=True, serialize=False)),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('revision', models.BigIntegerField(db_default=0)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='payments.organization')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='access_state_mode_known')],
            },
        ),
        migrations.RunSQL(FILL, UNDO),
        # The column stays, because the old code uses it. A migration of the release after the next can remove it.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(
                    model_name='organization',
                    name='revision',
                ),
                migrations.AlterModelOptions(
                    name='payment',
                    options={'base_manager_name': 'objects'},
                ),
            ],
        ),
    ]
