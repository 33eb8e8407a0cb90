"""Payments and states that Citus distributes by organization: every statement names the organization.

The tests run without Citus. They check the statements, and that everything works with the primary key that Citus needs.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, IntegrityError, connection, connections, transaction
from django.db.models import QuerySet, Subquery
from django.test import Client
from django.test.utils import CaptureQueriesContext
from sqlglot.errors import ParseError

from payments.admin.scope import EVERYTHING
from payments.anonymization import anonymize_payments
from payments.ingest import ImportResult, import_payments
from payments.ingest.staging import ID_KEY, fetch_primary_key
from payments.listing.filters import FILTERS
from payments.management.distribution import FOREIGN_KEYS, DistributionState, TableState, remaining_statements
from payments.models import Access, ApiKey, DayKind, Organization, Payment, SummedDay
from payments.totals.daily import Calendar, sum_days
from tests.support.api import Api, payment_ids
from tests.support.connecting import connected_to
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.lines import export_payments, line, source
from tests.support.migrated import fresh_database
from tests.support.shards import example_parameters, parts_without_organization, uses_distributed_table
from tests.support.sql import execute, fetch_value

pytestmark = pytest.mark.only("postgresql")

LOCAL_TABLE = TableState(has_foreign_key=True, is_distributed=False, has_local_rows=True)
NOT_DISTRIBUTED = DistributionState(
    key_has_organization=False,
    has_reference=False,
    unknown=frozenset(),
    behind=frozenset(),
    tables=dict.fromkeys(FOREIGN_KEYS, LOCAL_TABLE),
)


@pytest.fixture
def distributed(db: None) -> None:
    """Change the keys of the table as `distribute_payments` does."""
    for statement in remaining_statements(NOT_DISTRIBUTED):
        if statement.startswith("ALTER TABLE"):
            execute(statement)


@pytest.fixture(autouse=True)
def reads_as_with_citus(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.ensure_connection()
    monkeypatch.setattr(connections[DEFAULT_DB_ALIAS], "uses_citus", True)


@pytest.fixture
def books(distributed: None) -> Organization:
    return OrganizationFactory.create(id=1, name="Books")


@pytest.fixture
def bikes(books: Organization) -> Organization:
    return OrganizationFactory.create(id=2, name="Bikes")


def lines(*texts: bytes) -> bytes:
    return b"".join(text + b"\n" for text in texts)


def load(*texts: bytes, keep_going: bool = False, create_organizations: bool = False) -> tuple[ImportResult, list[str]]:
    refused: list[str] = []
    imported = import_payments(
        [source(lines(*texts), "f")],
        on_refused=lambda place, error: refused.append(f"{place}: {error}"),
        keep_going=keep_going,
        create_organizations=create_organizations,
    )
    return imported, refused


def exported(payments: QuerySet[Payment] | None = None) -> bytes:
    return b"".join(export_payments(payments or Payment.objects.all()))  # type: ignore[arg-type]


def statements_of(function: Callable[[], object]) -> list[str]:
    """Call a function, and return its statements on distributed tables."""
    with CaptureQueriesContext(connection) as queries:
        function()
    captured = [query["sql"] for query in queries if uses_distributed_table(query["sql"])]
    assert captured
    return captured


def violations(function: Callable[[], object]) -> list[str]:
    """Call a function, and return the parts of its statements that name no organization."""
    return [part for sql in statements_of(function) for part in parts_without_organization(sql)]


# Statements


@pytest.mark.parametrize("start", [{}, {"from": "pt_2"}], ids=["first page", "from"])
@pytest.mark.parametrize("order", [{}, {"sort": "asc"}], ids=["newest first", "oldest first"])
@pytest.mark.parametrize("parameters", [{}, *map(example_parameters, FILTERS)], ids=str)
def test_statements_of_a_page_name_the_organization(
    api: Api, organization: Organization, start: dict[str, str], order: dict[str, str], parameters: dict[str, str]
) -> None:
    for number in range(4):
        PaymentFactory.create(id=f"pt_{number}", organization=organization)

    def page() -> None:
        assert api.get(limit=1, **parameters, **order, **start).status_code == 200

    assert violations(page) == []


@pytest.mark.parametrize("path", ["/v2/payments/pt_1", "/v2/payments?from=pt_2&limit=1&sort=up"])
def test_statements_of_a_record_and_of_an_error_name_the_organization(api: Api, payment: Payment, path: str) -> None:
    assert violations(lambda: api.send("GET", path)) == []


@pytest.fixture
def payment(organization: Organization) -> Payment:
    return PaymentFactory.create(id="pt_1", organization=organization)


WRITES_ORGANIZATION = re.compile(r'(INSERT INTO|UPDATE|DELETE FROM|COPY) "?payments_organization\b')

IMPORTS: dict[str, list[bytes]] = {
    "new": [line(id="pt_2"), line(id="pt_3", organizationId="2")],
    "unchanged": [line()],
    "changed": [line(description="changed"), line(id="pt_2")],
    "other mode": [line(mode="test"), line(id="pt_2")],
    "other mode, after an invalid record": [b"nonsense", line(mode="test")],
}


@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize("kind", IMPORTS)
def test_statements_of_an_import_name_the_organization(bikes: Organization, kind: str, keep_going: bool) -> None:
    load(line())

    assert violations(lambda: load(*IMPORTS[kind], keep_going=keep_going)) == []


@pytest.mark.parametrize("kind", ["new", "changed", "other mode"])
def test_import_into_a_distributed_table_writes_no_organization(bikes: Organization, kind: str) -> None:
    """Organizations are on all servers, so writing one needs all of them."""
    load(line())

    with CaptureQueriesContext(connection) as queries:
        load(*IMPORTS[kind], keep_going=True)

    writes = [query["sql"] for query in queries if query["sql"].startswith(("INSERT", "UPDATE", "DELETE", "COPY"))]
    assert [sql for sql in writes if "payments_accessstate" in sql]
    assert [sql for sql in writes if WRITES_ORGANIZATION.match(sql)] == []
    assert [sql for sql in queries_for_update(queries) if "payments_organization" in sql] == []


def queries_for_update(queries: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in queries if "FOR UPDATE" in query["sql"]]


def test_import_into_an_undistributed_table_looks_up_ids_of_any_organization(organization: Organization) -> None:
    """There an ID belongs to one organization, and the import refuses the record of another one."""
    load(line())

    assert violations(lambda: load(line(description="changed")))


@pytest.mark.parametrize("customer_id", [None, "ct_7"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_statements_of_anonymization_name_the_organization(
    organization: Organization, customer_id: str | None, dry_run: bool
) -> None:
    PaymentFactory.create(organization=organization, customer_id="ct_7")

    def anonymize() -> None:
        part = Access(organization.id, "live")
        before = NOON + timedelta(days=1)
        assert anonymize_payments(
            part, before=before, customer_id=customer_id, dry_run=dry_run, on_progress=lambda _: None
        )

    assert violations(anonymize) == []


def test_statements_of_daily_totals_name_the_organization(key: ApiKey, payment: Payment) -> None:
    assert violations(lambda: sum_days(Calendar(key.access, DayKind.CREATED, "UTC"), [payment.created_at.date()])) == []
    assert SummedDay.objects.get().totals


def test_statement_of_the_revision_names_the_organization(api: Api) -> None:
    etag = api.get()["ETag"]

    assert violations(lambda: api.send("GET", "/v2/payments", If_None_Match=etag)) == []


@pytest.mark.parametrize("path", ["", "?status=succeeded&q=Order", "?from=pt_1", "export.jsonl"])
def test_statements_of_the_admin_list_name_the_organization(admin_client: Client, payment: Payment, path: str) -> None:
    assert violations(lambda: admin_client.get(f"/admin/payments/payment/{path}")) == []


WRONG = [
    "SELECT id FROM payments_payment",
    "SELECT id FROM payments_payment WHERE id = 'pt_1'",
    "SELECT id FROM payments_payment WHERE organization_id = 1 OR mode = 'live'",
    "SELECT id FROM payments_payment WHERE NOT (organization_id = 1)",
    "SELECT id FROM payments_payment WHERE organization_id <> 1",
    "SELECT id FROM payments_payment WHERE organization_id > 1",
    "SELECT id FROM payments_payment WHERE organization_id IN (SELECT id FROM payments_organization)",
    "SELECT id FROM payments_payment WHERE EXISTS (SELECT 1 FROM payments_apikey WHERE organization_id = 1)",
    "SELECT (SELECT count(*) FROM payments_payment) FROM payments_payment WHERE organization_id = 1",
    "SELECT id FROM payments_payment WHERE organization_id = 1 UNION ALL SELECT id FROM payments_payment",
    "SELECT a.id FROM payments_payment a JOIN payments_payment b ON a.id = b.id WHERE a.organization_id = 1",
    "SELECT a.id FROM staged_payments a LEFT JOIN payments_payment b ON b.organization_id = 1",
    "SELECT b.id FROM staged_payments a JOIN payments_payment b ON a.organization_id = b.organization_id",
    "SELECT (SELECT mode FROM payments_payment b WHERE b.id = a.id) FROM staged_payments a WHERE organization_id = 1",
    "UPDATE payments_payment SET description = '' WHERE id IN ('pt_1')",
    "DELETE FROM payments_payment WHERE id = 'pt_1'",
    "INSERT INTO payments_payment (organization_id, id) SELECT 1, 'pt_1' ON CONFLICT (id) DO NOTHING",
    "INSERT INTO payments_payment (id) VALUES ('pt_1')",
    "COPY payments_payment (id, mode) FROM STDIN",
    "CREATE TABLE copied AS SELECT id FROM payments_payment LIMIT 0",
    "SELECT revision FROM payments_accessstate WHERE mode = 'live'",
    "INSERT INTO payments_accessstate (organization_id, mode) VALUES (1, 'live') ON CONFLICT (mode) DO NOTHING",
]


@pytest.mark.parametrize("sql", WRONG)
def test_statement_without_the_organization_is_detected(sql: str) -> None:
    assert parts_without_organization(sql)


def test_lookup_of_the_start_by_its_id_alone_is_detected(payment: Payment) -> None:
    start = Payment.objects.filter(id=payment.id).values("created_at")
    wrong = Payment.objects.filter(organization_id=1, mode="live", created_at__lte=Subquery(start))

    assert violations(lambda: list(wrong))


def test_invalid_statement_is_detected() -> None:
    with pytest.raises(ParseError):
        parts_without_organization("SELECT FROM WHERE payments_payment")


# The primary key with the organization


def test_import_resolves_conflicts_by_id(organization: Organization) -> None:
    assert fetch_primary_key() == ID_KEY


def test_import_into_a_distributed_table_resolves_conflicts_by_both_columns(distributed: None) -> None:
    assert fetch_primary_key() == ("organization_id", "id")


def test_import_requests_sequential_mode_before_it_uses_a_table(books: Organization) -> None:
    with CaptureQueriesContext(connection) as queries:
        load(line())

    used = [query["sql"] for query in queries if "payments_" in query["sql"] or "citus" in query["sql"]]
    relevant = [sql for sql in used if "payments_importrun" not in sql]  # its transaction comes before, and after
    catalogs, rest = [sql for sql in relevant if "pg_class" in sql], [sql for sql in relevant if "pg_class" not in sql]
    assert relevant[: len(catalogs) + 1] == [*catalogs, "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"]
    assert any(sql.startswith('INSERT INTO "payments_accessstate"') for sql in rest)


def test_imports_add_and_change_payments(books: Organization) -> None:
    first, _ = load(*(line(id=f"pt_{number}") for number in range(30)))
    again, _ = load(*(line(id=f"pt_{number}") for number in range(30)))
    changed, _ = load(line(id="pt_0", description="now"), line(id="pt_1"), line(id="pt_x"))

    assert (first.written, again.written, changed.written) == (30, 0, 2)
    assert exported(Payment.objects.filter(id="pt_0")) == lines(line(id="pt_0", description="now"))
    assert Payment.objects.count() == 31


def test_two_organizations_can_have_payments_of_the_same_id(
    client: Client, books: Organization, bikes: Organization
) -> None:
    theirs = line(organizationId="2", description="theirs")

    imported, refused = load(line(), theirs)
    load(line(description="ours"))

    assert (imported.written, refused) == (2, [])
    assert exported() == lines(line(description="ours"), theirs)
    for organization, description in ((books, "ours"), (bikes, "theirs")):
        api = Api(client, ApiKeyFactory.create(organization=organization))
        assert api.get("/v2/payments/pt_1").json()["description"] == description
        payments = api.get(from_="pt_1").json()["_embedded"]["payments"]
        assert [payment["description"] for payment in payments] == [description]


@pytest.mark.parametrize("keep_going", [False, True])
def test_changed_mode_or_time_is_refused_with_the_same_message(bikes: Organization, keep_going: bool) -> None:
    load(line(id="pt_1"), line(id="pt_2"), line(id="pt_3", organizationId="2"))

    _, refused = load(
        line(id="pt_1", mode="test"),
        line(id="pt_2", createdAt="2019-01-01T00:00:00.000"),
        line(id="pt_3", mode="test"),  # a new payment of this organization
        keep_going=keep_going,
    )

    assert refused == [
        "f:1: mode: this payment exists in the other mode",
        "f:2: createdAt: must not change: this payment was created at another time",
    ]


def test_import_can_create_the_organization(distributed: None) -> None:
    imported, _ = load(line(), create_organizations=True)

    assert imported.written == 1


def test_database_refuses_a_payment_without_an_organization(distributed: None) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        PaymentFactory.create(organization=None, organization_id=404)


def test_filtered_walk_returns_the_matching_payments(client: Client, books: Organization) -> None:
    for number in range(9):
        PaymentFactory.create(id=f"pt_{number}", organization=books, failed=number % 2 == 0, created_at=NOON)
    api = Api(client, ApiKeyFactory.create(organization=books))

    pages = api.walk("next", api.get(limit=2, status="failed").json())
    back = api.walk("previous", pages[-1])

    assert payment_ids(*pages) == ["pt_8", "pt_6", "pt_4", "pt_2", "pt_0"]
    assert payment_ids(*reversed(back)) == payment_ids(*pages)


def test_demo_payments_export_and_anonymization_work(
    distributed: None, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    call_command("create_demo_payments", count=30, verbosity=0)
    call_command("export_payments", "--organization", "1001")
    output = capfdbinary.readouterr().out

    changed = anonymize_payments(Access(1001, "live"), before=NOON + timedelta(days=3650), on_progress=lambda _: None)

    anonymized = Payment.objects.filter(organization_id=1001, metadata="{}", description="")
    assert len(output.splitlines()) == Payment.objects.filter(organization_id=1001).count()
    assert 0 < changed == anonymized.count()


def test_admin_search_finds_a_payment_by_its_id(admin_client: Client, books: Organization, bikes: Organization) -> None:
    PaymentFactory.create(id="pt_1", organization=bikes, description="Order 7")

    page = admin_client.get("/admin/payments/payment/", {"q": "pt_1"}, follow=True)

    assert "Order 7" in page.content.decode()


def test_search_for_an_id_uses_the_index(bikes: Organization) -> None:
    """Up to PostgreSQL 17 this needs a statement that joins the organizations."""
    load(*(line(id=f"pt_{number}", organizationId=str(number % 2 + 1)) for number in range(5000)))
    execute("ANALYZE payments_payment")

    plan = EVERYTHING.payments.filter(id="pt_1").explain()

    assert "Index Scan using payments_payment_pkey" in plan
    assert "Seq Scan on payments_payment" not in plan


# Sessions


@pytest.mark.django_db
def test_statements_are_planned_once_unless_citus_is_installed(tmp_path: Any) -> None:
    """Citus cannot make a generic plan of a statement with subselects."""
    with fresh_database(tmp_path) as url:
        before = plan_cache_mode(url)
        with psycopg.connect(url) as server:
            server.execute("CREATE TABLE pg_dist_partition ()")  # a table of Citus

        assert (before, plan_cache_mode(url)) == ("force_generic_plan", "auto")


def plan_cache_mode(url: str) -> str:
    with connected_to(url):
        return str(fetch_value("SHOW plan_cache_mode"))
