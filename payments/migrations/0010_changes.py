import django.db.models.deletion
from django.db import migrations, models

# The first epoch of these payments begins: their order of change is unknown until now.
BEGIN = "UPDATE payments_accessstate SET change_id = revision, epoch = revision"


class Migration(migrations.Migration):

    dependencies = [
        ('payments', '0009_access_states'),
    ]

    operations = [
        # First the table that imports lock first, so that the migration waits for them.
        migrations.AddField(
            model_name='payment',
            name='change_id',
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.CreateModel(
            name='Change',
            fields=[
                ('pk', models.CompositePrimaryKey('organization_id', 'mode', 'number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('number', models.BigIntegerField()),
                ('change_id', models.BigIntegerField()),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='payments.organization')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='change_mode_known')],
            },
        ),
        migrations.AddField(
            model_name='accessstate',
            name='change_number',
            field=models.BigIntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name='accessstate',
            name='change_id',
            field=models.BigIntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name='accessstate',
            name='epoch',
            field=models.BigIntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name='accessstate',
            name='imported_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='accessstate',
            name='imported_payments',
            field=models.IntegerField(null=True),
        ),
        migrations.RunSQL(BEGIN, migrations.RunSQL.noop),
    ]
