"""A cluster that an older release distributed is migrated to the newest schema."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from payments.management.distribution import read_state, remaining_statements
from payments.models import AccessState, Payment
from tests.support.connecting import connected_to
from tests.support.lines import line
from tests.support.loading import store
from tests.support.migrated import empty_database
from tests.support.sql import execute

# What `distribute_payments` ran before `payments_accessstate` existed.
OLDER_DISTRIBUTION = """
    ALTER TABLE payments_payment DROP CONSTRAINT payments_payment_pkey,
        ADD CONSTRAINT payments_payment_pkey PRIMARY KEY (organization_id, id);
    ALTER TABLE payments_payment DROP CONSTRAINT payments_payment_organization_id_b9527654_fk_payments_;
    SELECT create_reference_table('payments_organization');
    SELECT create_distributed_table('payments_payment', 'organization_id');
    ALTER TABLE payments_payment ADD CONSTRAINT payments_payment_organization_id_b9527654_fk_payments_
        FOREIGN KEY (organization_id) REFERENCES payments_organization (id);
    SELECT truncate_local_data_after_distributing_table('payments_payment');
"""

ORGANIZATIONS = "INSERT INTO payments_organization (id, name) SELECT n, 'Books' FROM generate_series(1, 8) AS n"
PAYMENTS = """
    INSERT INTO payments_payment (
        id, organization_id, mode, amount, amount_currency, description, method, redirect_url, webhook_url, status,
        sequence_type, metadata, created_at, customer_id
    )
    SELECT
        'pt_' || n, n % 8 + 1, 'live', 10, 'EUR', 'Order ' || n, '', '', '', 'open', 'oneoff', '{}', '2026-01-01', ''
    FROM generate_series(1, 400) AS n
"""


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[None]:
    """Connect to a cluster without tables."""
    with empty_database(tmp_path) as url, connected_to(url):
        yield


@pytest.mark.parametrize("release", ["0003", "0005", "0008"])
def test_older_distributed_schema_is_migrated(empty: None, release: str) -> None:
    call_command("migrate", "payments", release, verbosity=0)
    for statement in (ORGANIZATIONS, PAYMENTS, *OLDER_DISTRIBUTION.split(";")[:-1]):
        execute(statement)

    call_command("migrate", verbosity=0)
    call_command("distribute_payments", verbosity=0)

    assert list(remaining_statements(read_state())) == []
    assert Payment.objects.count() == 400
    assert AccessState.objects.count() == 16
    assert store([line(id="pt_1", organizationId="2", createdAt="2026-01-01T00:00:00.000")]).changed == 1
    assert store([line(id="pt_new")]).changed == 1
