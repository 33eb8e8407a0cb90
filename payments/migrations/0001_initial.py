import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import djmoney.models.fields
import payments.fields
import payments.models
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Organization',
            fields=[
                ('id', models.PositiveBigIntegerField(primary_key=True, serialize=False, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(9223372036854775807)])),
                ('name', models.CharField(max_length=200, validators=[django.core.validators.RegexValidator('\\A[^\\x00-\\x1f\\x7f]*\\Z', 'A name is one line of text.')])),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id__gte', 1)), name='organization_id_positive')],
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('name', models.CharField(max_length=200, validators=[django.core.validators.RegexValidator('\\A[^\\x00-\\x1f\\x7f]*\\Z', 'A name is one line of text.')])),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(editable=False, null=True)),
                ('revoked_at', models.DateTimeField(editable=False, null=True)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='keys', to='payments.organization')),
            ],
            options={
                'verbose_name': 'API key',
                'verbose_name_plural': 'API keys',
                'constraints': [models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='api_key_mode_known')],
            },
        ),
        migrations.CreateModel(
            name='Payment',
            fields=[
                ('id', payments.fields.IdentifierField(default=payments.models.new_payment_id, editable=False, max_length=64, primary_key=True, serialize=False)),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('amount_currency', djmoney.models.fields.CurrencyField(default=None, editable=False, max_length=3)),
                ('amount', djmoney.models.fields.MoneyField(currency_choices=None, decimal_places=2, max_digits=15)),
                ('amount_net_currency', djmoney.models.fields.CurrencyField(default=None, editable=False, max_length=3, null=True)),
                ('amount_net', djmoney.models.fields.MoneyField(blank=True, currency_choices=None, decimal_places=2, max_digits=15, null=True)),
                ('amount_remaining_currency', djmoney.models.fields.CurrencyField(default=None, editable=False, max_length=3, null=True)),
                ('amount_remaining', djmoney.models.fields.MoneyField(blank=True, currency_choices=None, decimal_places=2, max_digits=15, null=True)),
                ('description', models.TextField(blank=True)),
                ('method', models.CharField(blank=True, max_length=32)),
                ('redirect_url', models.TextField(blank=True, verbose_name='redirect URL')),
                ('webhook_url', models.TextField(blank=True, verbose_name='webhook URL')),
                ('status', models.CharField(choices=[('open', 'Open'), ('pending', 'Pending'), ('authorized', 'Authorized'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('canceled', 'Canceled'), ('expired', 'Expired')], max_length=10)),
                ('sequence_type', models.CharField(choices=[('oneoff', 'Oneoff'), ('first', 'First'), ('recurring', 'Recurring')], max_length=9)),
                ('metadata', payments.fields.DocumentField(default='{}')),
                ('details', payments.fields.DocumentField(blank=True, null=True)),
                ('created_at', payments.fields.MillisecondField(default=django.utils.timezone.now)),
                ('expires_at', payments.fields.MillisecondField(blank=True, null=True)),
                ('paid_at', payments.fields.MillisecondField(blank=True, null=True)),
                ('customer_id', models.CharField(blank=True, max_length=64, verbose_name='customer ID')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='payments', to='payments.organization')),
            ],
            options={
                'indexes': [models.Index(models.F('organization'), models.F('mode'), models.OrderBy(models.F('created_at'), descending=True), models.OrderBy(models.F('id'), descending=True), name='payment_list')],
                'constraints': [models.CheckConstraint(condition=models.Q(('id__regex', '\\Apt_[A-Za-z0-9]{1,61}\\Z')), name='payment_id_form'), models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='payment_mode_known'), models.CheckConstraint(condition=models.Q(('status__in', ['open', 'pending', 'authorized', 'succeeded', 'failed', 'canceled', 'expired'])), name='payment_status_known'), models.CheckConstraint(condition=models.Q(('sequence_type__in', ['oneoff', 'first', 'recurring'])), name='payment_sequence_type_known'), models.CheckConstraint(condition=models.Q(models.Q(('status', 'succeeded'), _negated=True), ('paid_at__isnull', False), _connector='OR'), name='payment_succeeded_is_paid'), models.CheckConstraint(condition=models.Q(('method', ''), ('method__regex', '\\A[a-z0-9_]{1,32}\\Z'), _connector='OR'), name='payment_method_form'), models.CheckConstraint(condition=models.Q(('customer_id', ''), ('customer_id__regex', '\\Act_[A-Za-z0-9]{1,61}\\Z'), _connector='OR'), name='payment_customer_id_form'), models.CheckConstraint(condition=models.Q(models.Q(('amount_net__isnull', True), ('amount_net_currency__isnull', True)), models.Q(('amount_net__isnull', False), ('amount_net_currency__isnull', False)), _connector='OR'), name='payment_amount_net_whole'), models.CheckConstraint(condition=models.Q(models.Q(('amount_remaining__isnull', True), ('amount_remaining_currency__isnull', True)), models.Q(('amount_remaining__isnull', False), ('amount_remaining_currency__isnull', False)), _connector='OR'), name='payment_amount_remaining_whole')],
            },
        ),
    ]
