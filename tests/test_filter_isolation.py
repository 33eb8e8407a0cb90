"""The effort of a filtered page reveals nothing about other organizations, nor about the other mode.

The payments stay in the database for the whole module. Add no tests here that store payments.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from payments.database.sqlite.base import STEPS_BETWEEN_CHECKS, deadline_has_passed
from payments.models import Access, Mode, Organization, Payment
from tests.support.connecting import connected_to
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.lines import lines_with_order
from tests.support.lists import noon_plus, read_page, statement_of
from tests.support.load import Load, median_milliseconds
from tests.support.migrated import fresh_database
from tests.support.scale import report
from tests.support.service import Service
from tests.support.sql import buffers_read, execute, explain, plan_of, rolled_back

pytestmark = pytest.mark.django_db

# No other test stores payments of these organizations: PostgreSQL also reads deleted rows.
OWN, FOREIGN = 9_000_001, 9_000_002
OWN_PAYMENTS = 1500
FOREIGN_PAYMENTS = 3000
RARE = 5

# How often the payments outside of the list have a value.
OFTEN, RARELY, NEVER = "often", "rarely", "never"

# The list has no payment on the days that follow NOON.
DAYS = {OFTEN: 1, RARELY: 2, NEVER: 3}
STATUSES = {OFTEN: "failed", RARELY: "expired", NEVER: "canceled"}
CURRENCIES = {OFTEN: "USD", RARELY: "CHF", NEVER: "JPY"}
AMOUNTS = {OFTEN: 1000, RARELY: 2000, NEVER: 3000}


class Effort(NamedTuple):
    """What a page costs the database: the plan without values, and PostgreSQL's buffers or SQLite's instructions."""

    plan: str
    amount: int


def build_payments(organization: Organization, mode: str, count: int, frequency: str | None) -> Iterator[Payment]:
    """Yield payments; with a frequency, all of them have its values."""
    frequency_or_own = frequency or "own"
    day = DAYS[frequency] if frequency else 0
    for number in range(count):
        created_at = noon_plus(number) + timedelta(days=day)
        yield PaymentFactory.build(
            id=f"pt_{organization.pk}{mode}{frequency_or_own}{number:04}",
            organization=organization,
            mode=mode,
            created_at=created_at,
            paid_at=created_at,
            status=STATUSES[frequency] if frequency else "succeeded",
            method=frequency_or_own,
            customer_id=f"ct_{frequency or number // 10}",
            amount=AMOUNTS[frequency] if frequency else 10,
            amount_currency=CURRENCIES[frequency] if frequency else "EUR",
            sequence_type="first" if frequency == OFTEN else "oneoff",
            metadata=json.dumps({"order": frequency or f"{number}", "shop": "web"}),
        )


@pytest.fixture(scope="module", params=["another organization", "the other mode"])
def access(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Access]:
    """Store a list, and payments outside of it that have some values often and others rarely."""
    with rolled_back(django_db_blocker):
        own = OrganizationFactory.create(id=OWN)
        outside = {"another organization": (OrganizationFactory.create(id=FOREIGN), Mode.LIVE)}
        foreign, mode = outside.get(request.param, (own, Mode.TEST))
        for payments in (
            build_payments(own, Mode.LIVE, OWN_PAYMENTS, None),
            build_payments(foreign, mode, FOREIGN_PAYMENTS, OFTEN),
            build_payments(foreign, mode, RARE, RARELY),
        ):
            Payment.objects.bulk_create(payments)
        if connection.vendor == "postgresql":
            execute("SELECT gin_clean_pending_list('payment_terms')")  # PostgreSQL does this in the background
        execute("ANALYZE")
        yield Access(own.pk, Mode.LIVE)


def effort_of_page(access: Access, parameters: dict[str, str], *, start: str | None) -> Effort:
    query = {**parameters, "from": start}
    assert read_page(access, query).ids == []
    sql = statement_of(lambda: read_page(access, query))
    execute(sql)  # the first run also reads the catalog
    return effort_on_sqlite(sql) if connection.vendor == "sqlite" else effort_on_postgresql(sql)


def effort_on_postgresql(sql: str) -> Effort:
    plan = plan_of(execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}"))
    return Effort(outline(plan["Plan"]), buffers_read(plan))


def outline(node: Any) -> str:
    """Return the nodes of a plan and their indexes, without values."""
    children = ", ".join(map(outline, node.get("Plans", [])))
    return f"{node['Node Type']} {node.get('Index Name', '')} ({children})"


def effort_on_sqlite(sql: str) -> Effort:
    instructions = 0

    def count() -> None:
        nonlocal instructions
        instructions += 1

    connection.connection.set_progress_handler(count, 1)
    execute(sql)
    connection.connection.set_progress_handler(deadline_has_passed, STEPS_BETWEEN_CHECKS)  # as it was
    return Effort(explain(sql), instructions)


def day(frequency: str) -> str:
    return f"{NOON + timedelta(days=DAYS[frequency]):%Y-%m-%d}"


def within_an_hour(name: str, frequency: str) -> dict[str, str]:
    return {f"{name}[gte]": f"{day(frequency)}T12:00:00", f"{name}[lt]": f"{day(frequency)}T13:00:00"}


QUERIES = {
    "metadata": {value: {"metadata[order]": value} for value in DAYS},
    "metadata with a frequent pair": {value: {"metadata[order]": value, "metadata[shop]": "web"} for value in DAYS},
    "method": {value: {"method": value} for value in DAYS},
    "several methods": {value: {"method": f"{value},other"} for value in DAYS},
    "customerId": {value: {"customerId": f"ct_{value}"} for value in DAYS},
    "several customers": {value: {"customerId": f"ct_{value},ct_other"} for value in DAYS},
    "status": {value: {"status": status} for value, status in STATUSES.items()},
    "several statuses": {value: {"status": f"{status},open"} for value, status in STATUSES.items()},
    "currency": {value: {"currency": currency} for value, currency in CURRENCIES.items()},
    "sequenceType": {OFTEN: {"sequenceType": "first"}, NEVER: {"sequenceType": "recurring"}},
    "createdAt": {value: within_an_hour("createdAt", value) for value in DAYS},
    "paidAt": {value: within_an_hour("paidAt", value) for value in DAYS},
    "amount": {value: {"currency": "EUR", "amount[gte]": f"{amount}"} for value, amount in AMOUNTS.items()},
    "metadata and createdAt": {value: {"metadata[order]": value, "createdAt[gte]": day(value)} for value in DAYS},
    "metadata and status": {value: {"metadata[order]": value, "status": STATUSES[value]} for value in DAYS},
    "customerId and method": {value: {"customerId": f"ct_{value}", "method": value} for value in DAYS},
}


@pytest.mark.parametrize("start", [None, f"pt_{OWN}liveown{OWN_PAYMENTS // 2:04}"])
@pytest.mark.parametrize("name", QUERIES)
def test_effort_does_not_depend_on_values_outside_of_the_list(access: Access, name: str, start: str | None) -> None:
    efforts = {value: effort_of_page(access, query, start=start) for value, query in QUERIES[name].items()}

    assert len({effort.plan for effort in efforts.values()}) == 1, efforts
    amounts = [effort.amount for effort in efforts.values()]
    assert max(amounts) - min(amounts) <= 2, efforts


REQUESTS = 25
LIST_PAYMENTS = 100_000


@pytest.mark.processes
@pytest.mark.long
def test_time_does_not_depend_on_values_outside_of_the_list(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url:
        service = Service(url, log=tmp_path / "log")
        service.import_records(lines_with_order(1, LIST_PAYMENTS, order="own"))
        service.import_records(lines_with_order(2, FOREIGN_PAYMENTS, order=OFTEN))
        service.import_records(lines_with_order(2, RARE, order=RARELY))
        key = service.create_api_key(organization=1, mode="live")
        with connected_to(url):
            execute("VACUUM")
            execute("ANALYZE")
        with service.serving():
            loads = {value: Load(service.port, key, f"/v2/payments?metadata%5Border%5D={value}") for value in DAYS}
            medians = median_milliseconds(loads, requests=REQUESTS)

    report("metadata filter: " + ", ".join(f"{value} {median:.2f} ms" for value, median in medians.items()))
    assert max(medians.values()) < 1.5 * min(medians.values())
