"""Payments that are distributed by organization: every statement says whose it is about, and nothing else is otherwise.

There is no Citus here. What it needs of statements is read from those that are run; what it needs of the table, a key
that has the organization, PostgreSQL has too.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet, Subquery
from django.test import Client
from django.test.utils import CaptureQueriesContext
from sqlglot.errors import ParseError

from payments.admin.payments import payments_with_id
from payments.anonymization import anonymize_payments
from payments.api.parameters import FILTERS
from payments.export import export_payments
from payments.ingest import ImportResult, import_payments
from payments.ingest.writing import ID, prepare
from payments.management.distribution import State, statements
from payments.models import Access, ApiKey, Organization, Payment, SummedDay
from payments.totals import sum_day
from tests.support.api import Api, ids
from tests.support.connecting import connected_to
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.lines import line, source
from tests.support.migrated import fresh_database
from tests.support.shards import TABLE, unplaced

UNTOUCHED = State(
    key_has_organization=False,
    has_foreign_key=True,
    has_reference=False,
    is_distributed=False,
    has_local_rows=True,
)


@pytest.fixture
def distributed(db: None) -> None:
    """Give the table the keys that `distribute_payments` gives it."""
    with connection.cursor() as cursor:
        for statement in statements(UNTOUCHED):
            if statement.startswith("ALTER TABLE"):
                cursor.execute(statement)


@pytest.fixture
def books(distributed: None) -> Organization:
    return OrganizationFactory.create(id=1, name="Books")


@pytest.fixture
def bikes(books: Organization) -> Organization:
    return OrganizationFactory.create(id=2, name="Bikes")


def lines(*texts: bytes) -> bytes:
    return b"".join(text + b"\n" for text in texts)


def load(*texts: bytes, **options: bool) -> tuple[ImportResult, list[str]]:
    refused: list[str] = []
    imported = import_payments(
        [source(lines(*texts), "f")], on_refused=lambda place, error: refused.append(f"{place}: {error}"), **options
    )
    return imported, refused


def exported(payments: QuerySet[Payment] | None = None) -> bytes:
    return b"".join(export_payments(payments or Payment.objects.all()))  # type: ignore[arg-type]


def statements_of(work: Callable[[], object]) -> list[str]:
    """Do some work; return the statements on payments that were run for it."""
    with CaptureQueriesContext(connection) as queries:
        work()
    found = [query["sql"] for query in queries if TABLE in query["sql"]]
    assert found
    return found


def unplaced_of(work: Callable[[], object]) -> list[str]:
    return [part for sql in statements_of(work) for part in unplaced(sql)]


# Statements.


def asked_by(name: str) -> dict[str, str]:
    """Return a filter's example as parameters."""
    example = FILTERS[name].example
    if isinstance(example, dict):
        return {f"{name}[{key}]": value for key, value in example.items()}
    given = {name: ",".join(example) if isinstance(example, list) else str(example)}
    return given | ({"currency": "EUR"} if name.startswith("amount") else {})


@pytest.mark.parametrize("start", [{}, {"from": "pt_2"}], ids=["first page", "from"])
@pytest.mark.parametrize("order", [{}, {"sort": "asc"}], ids=["newest first", "oldest first"])
@pytest.mark.parametrize("asked", [{}, *map(asked_by, FILTERS)], ids=str)
def test_every_statement_of_a_page_says_whose_payments_it_is_about(
    api: Api, organization: Organization, start: dict[str, str], order: dict[str, str], asked: dict[str, str]
) -> None:
    for number in range(4):
        PaymentFactory.create(id=f"pt_{number}", organization=organization)

    def page() -> None:
        assert api.get(limit=1, **asked, **order, **start).status_code == 200

    assert unplaced_of(page) == []


@pytest.mark.parametrize("path", ["/v2/payments/pt_1", "/v2/payments?from=pt_2&limit=1&sort=up"])
def test_every_statement_of_a_record_and_of_a_refusal_says_so(api: Api, payment: Payment, path: str) -> None:
    assert unplaced_of(lambda: api.send("GET", path)) == []


@pytest.fixture
def payment(organization: Organization) -> Payment:
    return PaymentFactory.create(id="pt_1", organization=organization)


IMPORTS: dict[str, list[bytes]] = {
    "new": [line(id="pt_2"), line(id="pt_3", organizationId="2")],
    "unchanged": [line()],
    "changed": [line(description="changed"), line(id="pt_2")],
    "misplaced": [line(mode="test"), line(id="pt_2")],
    "misplaced, behind a bad one": [b"nonsense", line(mode="test")],
}


@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize("kind", IMPORTS)
def test_every_statement_of_an_import_says_so(bikes: Organization, kind: str, keep_going: bool) -> None:
    load(line())

    assert unplaced_of(lambda: load(*IMPORTS[kind], keep_going=keep_going)) == []


def test_where_payments_are_not_distributed_an_import_looks_for_their_ids_alone(organization: Organization) -> None:
    """It has to: there an id belongs to one organization, and a record of another is told so."""
    load(line())

    assert unplaced_of(lambda: load(line(description="changed")))


@pytest.mark.parametrize("customer_id", [None, "ct_7"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_every_statement_that_blanks_payments_says_so(
    organization: Organization, customer_id: str | None, dry_run: bool
) -> None:
    PaymentFactory.create(organization=organization, customer_id="ct_7")

    def anonymize() -> None:
        part = Access(organization.id, "live")
        before = NOON + timedelta(days=1)
        assert anonymize_payments(
            part, before=before, customer_id=customer_id, dry_run=dry_run, on_progress=lambda _: None
        )

    assert unplaced_of(anonymize) == []


def test_every_statement_that_sums_a_day_says_so(key: ApiKey, payment: Payment) -> None:
    assert unplaced_of(lambda: sum_day(key.access, payment.created_at.date())) == []
    assert SummedDay.objects.get().totals


@pytest.mark.parametrize("path", ["", "?status=failed&q=Order", "?from=pt_1", "export.jsonl"])
def test_every_statement_of_a_list_in_the_admin_says_so(admin_client: Client, payment: Payment, path: str) -> None:
    assert unplaced_of(lambda: admin_client.get(f"/admin/payments/payment/{path}")) == []


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
    "SELECT a.id FROM incoming_payments a LEFT JOIN payments_payment b ON b.organization_id = 1",
    "SELECT b.id FROM incoming_payments a JOIN payments_payment b ON a.organization_id = b.organization_id",
    "SELECT (SELECT mode FROM payments_payment b WHERE b.id = a.id) FROM incoming_payments a WHERE organization_id = 1",
    "UPDATE payments_payment SET description = '' WHERE id IN ('pt_1')",
    "DELETE FROM payments_payment WHERE id = 'pt_1'",
    "INSERT INTO payments_payment (organization_id, id) SELECT 1, 'pt_1' ON CONFLICT (id) DO NOTHING",
    "INSERT INTO payments_payment (id) VALUES ('pt_1')",
    "COPY payments_payment (id, mode) FROM STDIN",
    "CREATE TABLE copied AS SELECT id FROM payments_payment LIMIT 0",
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_statement_that_does_not_is_found_out(wrong: str) -> None:
    assert unplaced(wrong)


def test_a_start_that_is_looked_up_by_its_id_alone_is_found_out(payment: Payment) -> None:
    start = Payment.objects.filter(id=payment.id).values("created_at")
    wrong = Payment.objects.filter(organization_id=1, mode="live", created_at__lte=Subquery(start))

    assert unplaced_of(lambda: list(wrong))


def test_a_statement_that_cannot_be_read_is_found_out() -> None:
    with pytest.raises(ParseError):
        unplaced("SELECT FROM WHERE payments_payment")


# What is otherwise where the key has the organization, and what is not.


def test_the_target_of_an_imports_conflicts_follows_the_database(organization: Organization) -> None:
    assert prepare() == ID


def test_the_target_of_an_imports_conflicts_has_the_organization(distributed: None) -> None:
    assert prepare() == ("organization_id", "id")


def test_an_import_asks_for_one_connection_to_each_worker_before_it_touches_a_table(books: Organization) -> None:
    with CaptureQueriesContext(connection) as queries:
        load(line())

    about = [query["sql"] for query in queries if "payments_" in query["sql"] or "citus" in query["sql"]]
    catalogs, rest = [sql for sql in about if "pg_class" in sql], [sql for sql in about if "pg_class" not in sql]
    assert about[: len(catalogs) + 1] == [*catalogs, "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"]
    assert any(sql.startswith('UPDATE "payments_organization"') for sql in rest)


def test_imports_add_change_and_leave_alone(books: Organization) -> None:
    first, _ = load(*(line(id=f"pt_{number}") for number in range(30)))
    again, _ = load(*(line(id=f"pt_{number}") for number in range(30)))
    changed, _ = load(line(id="pt_0", description="now"), line(id="pt_1"), line(id="pt_x"))

    assert (first.changed, again.changed, changed.changed) == (30, 0, 2)
    assert exported(Payment.objects.filter(id="pt_0")) == lines(line(id="pt_0", description="now"))
    assert Payment.objects.count() == 31


def test_two_organizations_may_have_a_payment_of_one_id(
    client: Client, books: Organization, bikes: Organization
) -> None:
    theirs = line(organizationId="2", description="theirs")

    imported, refused = load(line(), theirs)
    load(line(description="ours"))

    assert (imported.changed, refused) == (2, [])
    assert exported() == lines(line(description="ours"), theirs)
    for organization, description in ((books, "ours"), (bikes, "theirs")):
        api = Api(client, ApiKeyFactory.create(organization=organization))
        assert api.get("/v2/payments/pt_1").json()["description"] == description
        assert [each["description"] for each in api.get(from_="pt_1").json()["_embedded"]["payments"]] == [description]


@pytest.mark.parametrize("keep_going", [False, True])
def test_what_fixes_a_payments_place_is_refused_in_the_same_words(bikes: Organization, keep_going: bool) -> None:
    load(line(id="pt_1"), line(id="pt_2"), line(id="pt_3", organizationId="2"))

    _, refused = load(
        line(id="pt_1", mode="test"),
        line(id="pt_2", createdAt="2019-01-01T00:00:00.000"),
        line(id="pt_3", mode="test"),  # this organization has none of that id
        keep_going=keep_going,
    )

    assert refused == [
        "f:1: mode: this payment exists in the other mode",
        "f:2: createdAt: must not change: this payment was created at another time",
    ]


def test_an_organization_that_is_made_by_an_import_is_there_at_once(distributed: None) -> None:
    imported, _ = load(line(), create_organizations=True)

    assert imported.changed == 1


def test_a_payment_of_no_organization_is_refused_by_the_database_at_once(distributed: None) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        PaymentFactory.create(organization=None, organization_id=404)


def test_a_walk_with_filters_and_the_record_are_as_ever(client: Client, books: Organization) -> None:
    for number in range(9):
        PaymentFactory.create(id=f"pt_{number}", organization=books, failed=number % 2 == 0, created_at=NOON)
    api = Api(client, ApiKeyFactory.create(organization=books))

    pages = api.walk("next", api.get(limit=2, status="failed").json())
    back = api.walk("previous", pages[-1])

    assert ids(*pages) == ["pt_8", "pt_6", "pt_4", "pt_2", "pt_0"]
    assert ids(*reversed(back)) == ids(*pages)


def test_demo_payments_exports_and_blanking_are_as_ever(
    distributed: None, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    call_command("create_demo_payments", count=30, verbosity=0)
    call_command("export_payments", "--organization", "1001")
    output = capfdbinary.readouterr().out

    changed = anonymize_payments(Access(1001, "live"), before=NOON + timedelta(days=3650), on_progress=lambda _: None)

    blanked = Payment.objects.filter(organization_id=1001, metadata="{}", description="")
    assert len(output.splitlines()) == Payment.objects.filter(organization_id=1001).count()
    assert 0 < changed == blanked.count()


def test_staff_find_a_payment_by_its_id(admin_client: Client, books: Organization, bikes: Organization) -> None:
    PaymentFactory.create(id="pt_1", organization=bikes, description="Order 7")

    found = admin_client.get("/admin/payments/payment/", {"q": "pt_1"}, follow=True)

    assert "Order 7" in found.content.decode()


def test_an_id_alone_is_found_by_an_index(bikes: Organization) -> None:
    """Up to PostgreSQL 17 it is not, unless the statement leads through the organizations."""
    load(*(line(id=f"pt_{number}", organizationId=str(number % 2 + 1)) for number in range(5000)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE payments_payment")

    plan = payments_with_id("pt_1").explain()

    assert "Index Scan using payments_payment_pkey" in plan
    assert "Seq Scan on payments_payment" not in plan


# Sessions.


@pytest.mark.django_db
def test_statements_are_planned_once_but_where_citus_plans(tmp_path: Any) -> None:
    """A generic plan of a statement with subselects is none that Citus can make."""
    with fresh_database(tmp_path) as url:
        before = plan_cache_mode(url)
        with psycopg.connect(url) as server:
            server.execute("CREATE TABLE pg_dist_partition ()")  # in place of that by which Citus is known

        assert (before, plan_cache_mode(url)) == ("force_generic_plan", "auto")


def plan_cache_mode(url: str) -> str:
    with connected_to(url), connection.cursor() as cursor:
        cursor.execute("SHOW plan_cache_mode")
        return str(cursor.fetchone()[0])
