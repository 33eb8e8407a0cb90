"""All tables, with their indexes.

Until the first release, a change of the schema edits this migration and gives it a new name, with the number of edits:
`0001_tables_8`. Then a database from before the edit is recognized (database/migration_state.py). Only an index that
models cannot declare needs SQL.
"""

import unicodedata

import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
import django.db.models.functions.text
import django.db.models.lookups
import django.utils.timezone
import payments.models.days
import payments.models.expressions
import payments.models.fields
import payments.models.organization
import payments.models.payment
from django.conf import settings
from django.db import migrations, models

from payments.listing import search_terms, terms
from payments.listing.search_terms import folded

# PostgreSQL's `translate` compares each character of a text with each letter of an alphabet, so there are several: Latin,
# Greek, Cyrillic, further Cyrillic with Armenian, and the others.
ALPHABETS = (range(0x80, 0x370), range(0x370, 0x400), range(0x400, 0x430), range(0x430, 0x590), range(0x590, 0x1F000))


def fold_function():
    """Return the statement for a function that folds texts as Python's `folded` does, in every locale.

    No collation with all letters exists in every cluster. In JSON, a backslash that normalization makes would change the
    meaning of the next character. The function takes 1 µs for ASCII, 8 µs for a line of German and 30 µs for one of Russian.
    """
    steps = " ".join(
        f"IF value ~ '[{letters}]' THEN value := translate(value, '{letters}', '{folded(letters)}'); END IF;"
        for letters in map(letters_to_fold, ALPHABETS)
    )
    return f"""
        CREATE OR REPLACE FUNCTION {search_terms.FOLD}(value text) RETURNS text
        LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
        BEGIN
            value := lower(value COLLATE "C");
            IF octet_length(value) = char_length(value) THEN RETURN value; END IF;
            value := lower(normalize(translate(value, '\uff3c\ufe68', '  '), NFKD) COLLATE "C");
            {steps}
            RETURN regexp_replace(regexp_replace(value, '[\u00df\u1e9e]', 'ss', 'g'), 'i\u0307+', 'i', 'g');
        END $$
    """


def letters_to_fold(alphabet):
    """Return the letters of an alphabet that normalization keeps and folding changes to one other letter."""
    letters = [letter for letter in map(chr, alphabet) if unicodedata.is_normalized("NFKD", letter)]
    return "".join(letter for letter in letters if len(folded(letter)) == 1 and folded(letter) != letter)


# GIN indexes. New entries first go to the index's pending list (`fastupdate`): without the list, imports would take
# 50 % longer. PostgreSQL uses `payment_terms` after ANALYZE has collected the statistics of the terms. It would not use
# statistics of the search terms.
#
# The statements of a list have one generic plan for all organizations. With n_distinct = 1, PostgreSQL estimates the
# rows of the largest organization, not of an average one: for an average one, it would read and sort all payments to
# find the start of a page. Citus accepts the setting only before it distributes the table. It needs none there, because
# it makes each plan for its values.
ON_POSTGRESQL = (
    f"CREATE INDEX payment_terms ON payments_payment USING gin (({terms.filter_terms_sql(*terms.TermCondition.columns)}))",
    f"CREATE INDEX payment_search ON payments_payment USING gin (({search_terms.search_terms_sql(**{name: name for name in search_terms.HasSearchTerms.columns})}))",
    "ALTER INDEX payment_search ALTER COLUMN 1 SET STATISTICS 0",
    "ALTER TABLE payments_payment ALTER COLUMN organization_id SET (n_distinct = 1)",
)


def add_indexes_of_terms(apps, schema_editor):
    """Add the indexes for filters and for the admin's search, and correct the statistics of organizations."""
    if schema_editor.connection.vendor == "postgresql":
        for statement in (fold_function(), *ON_POSTGRESQL):
            schema_editor.execute(statement, params=None)


# With this session engine, the database ends the sessions of a user who is deactivated or leaves the staff, because not
# every change of a user runs code of Django's models. On SQLite, Django changes a table by making it again, which removes
# its triggers. So the last migration of `auth` comes before this one, and a migration of the sessions' table must make
# the trigger again.
DELETE_SESSIONS = "DELETE FROM payments_staffsession WHERE user_id = CAST(OLD.id AS varchar(64))"
LOSES_RIGHTS = """
    CREATE TRIGGER payments_end_sessions AFTER UPDATE OF is_active, is_staff ON auth_user FOR EACH ROW
    WHEN (OLD.is_active AND NOT NEW.is_active OR OLD.is_staff AND NOT NEW.is_staff)
"""
END_OF_SESSIONS = {
    "postgresql": [
        "CREATE FUNCTION payments_end_sessions() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN {DELETE_SESSIONS}; RETURN NULL; END $$",
        f"{LOSES_RIGHTS} EXECUTE FUNCTION payments_end_sessions()",
    ],
    "sqlite": [f"{LOSES_RIGHTS} BEGIN {DELETE_SESSIONS}; END"],
}
HAS_SESSIONS = settings.SESSION_ENGINE == "payments.admin.sessions" and settings.AUTH_USER_MODEL == "auth.User"


def add_end_of_sessions(apps, schema_editor):
    for statement in END_OF_SESSIONS[schema_editor.connection.vendor] if HAS_SESSIONS else ():
        schema_editor.execute(statement, params=None)


def remove_end_of_sessions(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION IF EXISTS payments_end_sessions CASCADE", params=None)
    else:
        schema_editor.execute("DROP TRIGGER IF EXISTS payments_end_sessions", params=None)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        *([('auth', '0012_alter_user_first_name_max_length')] if HAS_SESSIONS else []),
    ]

    operations = [
        migrations.CreateModel(
            name='Organization',
            fields=[
                ('id', models.PositiveBigIntegerField(primary_key=True, serialize=False, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(9223372036854775807)])),
                ('name', models.CharField(max_length=200, validators=[django.core.validators.RegexValidator('\\A[^\\x00-\\x1f\\x7f]*\\Z', 'A name is one line of text.')])),
                ('time_zone', models.CharField(default=payments.models.organization.default_time_zone, max_length=64, validators=[payments.models.days.validate_time_zone])),
            ],
            options={
                'permissions': [('all_organizations', 'Can see all organizations')],
                'default_permissions': ('add', 'change', 'view'),
                'constraints': [models.CheckConstraint(condition=models.Q(('id__gte', 1)), name='organization_id_positive')],
            },
        ),
        migrations.CreateModel(
            name='PaymentRead',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('read_at', models.DateTimeField()),
                ('user_id', models.CharField(max_length=64)),
                ('user_name', models.CharField(max_length=150)),
                ('kind', models.CharField(choices=[('payment', 'Page of the payment'), ('list', 'List'), ('export', 'Export')], max_length=7)),
                ('organization_id', models.BigIntegerField()),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('filters', models.CharField(blank=True, max_length=255)),
                ('count', models.PositiveIntegerField()),
                ('first_id', models.CharField(blank=True, max_length=64)),
                ('last_id', models.CharField(blank=True, max_length=64)),
                ('oldest_at', models.DateTimeField(null=True)),
                ('newest_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name_plural': 'access log',
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['read_at'], name='payment_read_time'), models.Index(fields=['user_name', 'id'], name='payment_read_user')],
            },
        ),
        migrations.CreateModel(
            name='StaffSession',
            fields=[
                ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('user_id', models.CharField(blank=True, max_length=64)),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['user_id'], name='staff_session_user')],
            },
        ),
        migrations.CreateModel(
            name='StaffPreferences',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('organization_id', models.BigIntegerField(null=True)),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], db_default='live', default='live', max_length=4)),
                ('columns', models.JSONField(null=True)),
                ('export_options', models.JSONField(null=True)),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='preferences_mode_known')],
            },
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
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='change_mode_known')],
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('scope', models.CharField(choices=[('read', 'Read'), ('import', 'Import')], default='read', max_length=6)),
                ('name', models.CharField(max_length=200, validators=[django.core.validators.RegexValidator('\\A[^\\x00-\\x1f\\x7f]*\\Z', 'A name is one line of text.')])),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('hint', models.CharField(editable=False, max_length=4, verbose_name='ends in')),
                ('form_id', models.UUIDField(editable=False, null=True, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(editable=False, null=True)),
                ('revoked_at', models.DateTimeField(editable=False, null=True)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='keys', to='payments.organization')),
            ],
            options={
                'default_permissions': ('add', 'change', 'view'),
                'verbose_name': 'API key',
                'verbose_name_plural': 'API keys',
                'constraints': [models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='api_key_mode_known'), models.CheckConstraint(condition=models.Q(('scope__in', ['read', 'import'])), name='api_key_scope_known')],
            },
        ),
        migrations.CreateModel(
            name='AccessState',
            fields=[
                ('pk', models.CompositePrimaryKey('organization_id', 'mode', blank=True, editable=False, primary_key=True, serialize=False)),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('revision', models.BigIntegerField(db_default=0)),
                ('change_number', models.BigIntegerField(db_default=0)),
                ('change_id', models.BigIntegerField(db_default=0)),
                ('epoch', models.BigIntegerField(db_default=0)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='payments.organization')),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='access_state_mode_known')],
            },
        ),
        migrations.CreateModel(
            name='Payment',
            fields=[
                ('id', payments.models.fields.IdentifierField(default=payments.models.payment.new_payment_id, editable=False, max_length=64, primary_key=True, serialize=False)),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('amount', models.DecimalField(decimal_places=2, max_digits=15)),
                ('amount_currency', models.CharField(max_length=3)),
                ('amount_net', models.DecimalField(blank=True, decimal_places=2, max_digits=15, null=True)),
                ('amount_net_currency', models.CharField(blank=True, max_length=3, null=True)),
                ('amount_remaining', models.DecimalField(blank=True, decimal_places=2, max_digits=15, null=True)),
                ('amount_remaining_currency', models.CharField(blank=True, max_length=3, null=True)),
                ('description', models.TextField(blank=True)),
                ('method', models.CharField(blank=True, max_length=32)),
                ('redirect_url', models.TextField(blank=True, verbose_name='redirect URL')),
                ('webhook_url', models.TextField(blank=True, verbose_name='webhook URL')),
                ('status', models.CharField(choices=[('open', 'Open'), ('pending', 'Pending'), ('authorized', 'Authorized'), ('succeeded', 'Paid'), ('failed', 'Failed'), ('canceled', 'Canceled'), ('expired', 'Expired')], max_length=10)),
                ('sequence_type', models.CharField(choices=[('oneoff', 'One-off'), ('first', 'First of a series'), ('recurring', 'Recurring')], max_length=9)),
                ('metadata', payments.models.fields.DocumentField(default='{}')),
                ('details', payments.models.fields.DocumentField(blank=True, null=True)),
                ('created_at', payments.models.fields.MillisecondField(default=django.utils.timezone.now)),
                ('expires_at', payments.models.fields.MillisecondField(blank=True, null=True)),
                ('paid_at', payments.models.fields.MillisecondField(blank=True, null=True)),
                ('paid_before', payments.models.fields.MillisecondField(blank=True, editable=False, null=True)),
                ('status_before', models.CharField(blank=True, editable=False, max_length=10, null=True)),
                ('anonymized_at', payments.models.fields.MillisecondField(blank=True, editable=False, null=True)),
                ('customer_id', models.CharField(blank=True, max_length=64, verbose_name='customer ID')),
                ('change_id', models.BigIntegerField(editable=False)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='payments', to='payments.organization')),
            ],
            options={
                'base_manager_name': 'objects',
                'default_permissions': ('view',),
                'permissions': [('anonymize_payment', 'Can remove the personal data of payments')],
                'indexes': [models.Index(models.F('organization'), models.F('mode'), models.OrderBy(models.F('created_at'), descending=True), models.OrderBy(models.F('id'), descending=True), name='payment_list'), models.Index(condition=models.Q(('status', 'succeeded'), _negated=True), fields=['organization', 'mode', 'status', '-created_at', '-id'], name='payment_status'), models.Index(condition=models.Q(('status__in', ['authorized', 'open', 'pending'])), fields=['organization', 'mode', '-created_at', '-id'], name='payment_in_flight'), models.Index(condition=models.Q(('customer_id', ''), _negated=True), fields=['organization', 'mode', 'customer_id', '-created_at', '-id'], name='payment_customer'), models.Index(models.F('organization'), models.F('mode'), payments.models.expressions.Day('paid_at'), models.OrderBy(models.F('created_at'), descending=True), condition=models.Q(('paid_at__isnull', False)), name='payment_paid'), models.Index(fields=['change_id', 'organization', 'mode'], name='payment_change')],
                'constraints': [models.CheckConstraint(condition=models.Q(('id__regex', '\\Apt_[A-Za-z0-9_-]+\\Z'), django.db.models.lookups.LessThanOrEqual(django.db.models.functions.text.Length('id'), 64)), name='payment_id_form'), models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='payment_mode_known'), models.CheckConstraint(condition=models.Q(('status__in', ['open', 'pending', 'authorized', 'succeeded', 'failed', 'canceled', 'expired'])), name='payment_status_known'), models.CheckConstraint(condition=models.Q(('sequence_type__in', ['oneoff', 'first', 'recurring'])), name='payment_sequence_type_known'), models.CheckConstraint(condition=models.Q(models.Q(('status', 'succeeded'), _negated=True), ('paid_at__isnull', False), _connector='OR'), name='payment_succeeded_is_paid'), models.CheckConstraint(condition=models.Q(('method', ''), models.Q(('method__regex', '\\A[A-Za-z0-9_-]+\\Z'), django.db.models.lookups.LessThanOrEqual(django.db.models.functions.text.Length('method'), 32)), _connector='OR'), name='payment_method_form'), models.CheckConstraint(condition=models.Q(('customer_id', ''), models.Q(('customer_id__regex', '\\Act_[A-Za-z0-9_-]+\\Z'), django.db.models.lookups.LessThanOrEqual(django.db.models.functions.text.Length('customer_id'), 64)), _connector='OR'), name='payment_customer_id_form'), models.CheckConstraint(condition=models.Q(django.db.models.lookups.LessThanOrEqual(payments.models.expressions.ByteLength('description'), 16384), django.db.models.lookups.LessThanOrEqual(django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(payments.models.expressions.ByteLength('description'), '+', payments.models.expressions.ByteLength('redirect_url')), '+', payments.models.expressions.ByteLength('webhook_url')), '+', payments.models.expressions.ByteLength('metadata')), '+', django.db.models.functions.comparison.Coalesce(payments.models.expressions.ByteLength('details'), 0)), 65536)), name='payment_size'), models.CheckConstraint(condition=models.Q(models.Q(('amount_net__isnull', True), ('amount_net_currency__isnull', True)), models.Q(('amount_net__isnull', False), ('amount_net_currency__isnull', False)), _connector='OR'), name='payment_amount_net_whole'), models.CheckConstraint(condition=models.Q(models.Q(('amount_remaining__isnull', True), ('amount_remaining_currency__isnull', True)), models.Q(('amount_remaining__isnull', False), ('amount_remaining_currency__isnull', False)), _connector='OR'), name='payment_amount_remaining_whole')],
            },
        ),
        migrations.CreateModel(
            name='SavedFilter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('organization_id', models.BigIntegerField(null=True)),
                ('name', models.CharField(max_length=60)),
                ('query', models.CharField(max_length=4000)),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(condition=models.Q(('organization_id__isnull', True)), fields=('user', 'name'), name='saved_filter_name_once'), models.UniqueConstraint(condition=models.Q(('organization_id__isnull', False)), fields=('organization_id', 'name'), name='shared_filter_name_once')],
            },
        ),
        migrations.CreateModel(
            name='SummedDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('kind', models.CharField(choices=[('paid', 'By paid day'), ('created', 'By created day')], max_length=7)),
                ('time_zone', models.CharField(max_length=64)),
                ('day', models.DateField()),
                ('totals', models.JSONField()),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='payments.organization')),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('organization', 'mode', 'kind', 'day'), name='summed_day_once'), models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='summed_day_mode_known'), models.CheckConstraint(condition=models.Q(('kind__in', ['paid', 'created'])), name='summed_day_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='StaffOrganization',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('organization', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='payments.organization')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='staff_organizations', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('user', 'organization'), name='staff_organization_once')],
            },
        ),
        migrations.CreateModel(
            name='ImportRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('started_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('way', models.CharField(choices=[('command', 'by command'), ('api', 'over the API')], default='command', max_length=7)),
                ('source', models.CharField(max_length=255)),
                ('actor', models.CharField(max_length=150)),
                ('outcome', models.CharField(choices=[('running', 'Running or interrupted'), ('succeeded', 'Succeeded'), ('partial', 'Some records refused'), ('failed', 'Failed')], default='running', max_length=9)),
                ('read', models.PositiveIntegerField(default=0)),
                ('refused', models.PositiveIntegerField(default=0)),
                ('created', models.PositiveIntegerField(default=0)),
                ('changed', models.PositiveIntegerField(default=0)),
                ('unchanged', models.PositiveIntegerField(default=0)),
                ('errors', models.JSONField(default=list)),
            ],
            options={
                'verbose_name': 'import',
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['started_at'], name='import_run_started')],
                'constraints': [models.CheckConstraint(condition=models.Q(('outcome__in', ['running', 'succeeded', 'partial', 'failed'])), name='import_run_outcome_known'), models.CheckConstraint(condition=models.Q(('way__in', ['command', 'api'])), name='import_run_way_known')],
            },
        ),
        migrations.CreateModel(
            name='ImportPart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('organization_id', models.BigIntegerField()),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('written', models.PositiveIntegerField(default=0)),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='payments.importrun')),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['organization_id', 'mode', 'run'], name='import_part_access')],
                'constraints': [models.UniqueConstraint(fields=('run', 'organization_id', 'mode'), name='import_part_once'), models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='import_part_mode_known')],
            },
        ),
        migrations.CreateModel(
            name='ImportTimes',
            fields=[
                ('pk', models.CompositePrimaryKey('organization_id', 'mode', blank=True, editable=False, primary_key=True, serialize=False)),
                ('mode', models.CharField(choices=[('live', 'Live'), ('test', 'Test')], max_length=4)),
                ('command_at', models.DateTimeField(null=True)),
                ('api_at', models.DateTimeField(null=True)),
                ('late_at', models.DateTimeField(null=True)),
                ('days', models.JSONField(default=list)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='payments.organization')),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('mode__in', ['live', 'test'])), name='import_times_mode_known')],
            },
        ),
        migrations.CreateModel(
            name='StatusChange',
            fields=[
                ('pk', models.CompositePrimaryKey('organization_id', 'payment_id', 'change_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('payment_id', models.CharField(max_length=64)),
                ('change_id', models.BigIntegerField()),
                ('status', models.CharField(choices=[('open', 'Open'), ('pending', 'Pending'), ('authorized', 'Authorized'), ('succeeded', 'Paid'), ('failed', 'Failed'), ('canceled', 'Canceled'), ('expired', 'Expired')], max_length=10)),
                ('import_id', models.BigIntegerField()),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='payments.organization')),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['open', 'pending', 'authorized', 'succeeded', 'failed', 'canceled', 'expired'])), name='status_change_known')],
            },
        ),
        migrations.RunPython(add_indexes_of_terms, migrations.RunPython.noop),
        migrations.RunPython(add_end_of_sessions, remove_end_of_sessions),
    ]
