"""A key sees no payment of another organization or mode, and cannot find out whether one exists."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from http.client import HTTPResponse
from math import sqrt
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeGuard

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from payments.models import ApiKey, Mode, Organization, Payment
from tests.support.api import Api
from tests.support.connecting import connected_to
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.processes import ROOT
from tests.support.scale import IS_LONG, SEED, report, times
from tests.support.service import Service, Walker

pytestmark = [pytest.mark.also("citus"), pytest.mark.xdist_group("service")]

PAYMENTS = times(100, long=2000)  # of each tenant
THREADS = 4

# Sent with all requests whose responses are compared, because a response repeats it.
REQUEST_ID = "0123456789abcdef0123456789abcdef"

# Status, headers and body.
Response = tuple[int, tuple[tuple[str, str], ...], bytes]


class Tenant(NamedTuple):
    """An organization in one mode. The ID and the description of each of its payments contain its mark."""

    key: str
    mark: str
    ids: list[str]


@pytest.fixture(scope="module")
def tenants(service: Service, django_db_blocker: DjangoDbBlocker) -> list[Tenant]:
    """Create two organizations with payments in both modes. The positions of their payments alternate."""
    with django_db_blocker.unblock(), connected_to(service.database_url):
        organizations = [Organization.objects.create(id=number, name="Books") for number in (8001, 8002)]
        return [create_tenant(organization, mode) for organization in organizations for mode in Mode.values]


def create_tenant(organization: Organization, mode: str) -> Tenant:
    mark = f"{organization.pk}{mode}"
    payments = [
        PaymentFactory.build(
            id=f"pt_{mark}{number:07}",
            organization=organization,
            mode=mode,
            description=mark,
            created_at=NOON + timedelta(milliseconds=number // 3),
        )
        for number in range(PAYMENTS)
    ]
    Payment.objects.bulk_create(payments)
    _, key = ApiKey.objects.issue(organization, mode=mode, name="Tests")
    return Tenant(key, mark, [payment.id for payment in payments])


def unknown_id(chance: Random, tenants: list[Tenant]) -> str:
    """Return an unknown ID that looks like one of a tenant."""
    return f"pt_{chance.choice(tenants).mark}{chance.randrange(10**6, 10**7)}"


def comparable(response: HTTPResponse, body: bytes) -> Response:
    """Return a response without its date."""
    return response.status, tuple(pair for pair in response.getheaders() if pair[0].lower() != "date"), body


def send_random_requests(
    base_url: str, tenants: list[Tenant], *, requests: int, seed: int
) -> tuple[Counter[str], set[Response]]:
    """Request lists and records with own, foreign and unknown IDs. Return figures and the different errors."""
    chance = Random(seed)  # noqa: S311
    figures: Counter[str] = Counter(foreign=0)
    errors = set()
    with Walker(base_url, key="") as walker:
        for _ in range(requests):
            tenant, other_tenant = chance.sample(tenants, 2)
            own, foreign = chance.choice(tenant.ids), chance.choice(other_tenant.ids)
            payment_id = chance.choice([own, own, foreign, unknown_id(chance, tenants)])
            list_path = f"/v2/payments?limit={chance.randint(1, 60)}"
            feed_path = f"/v2/payments/changes?limit={chance.randint(1, 60)}"
            path = chance.choice([list_path, f"{list_path}&from={payment_id}", f"/v2/payments/{payment_id}", feed_path])
            walker.key = tenant.key

            status, headers, body = comparable(*walker.send(path, X_Request_ID=REQUEST_ID))

            succeeds = path in {list_path, feed_path} or payment_id == own
            expected = 200 if succeeds else 400 if path.startswith(list_path) else 404
            figures.update(requests=1, unexpected=status != expected, rows=body.count(b'"resource":"payment"'))
            figures.update(foreign=sum(other.mark.encode() in body for other in tenants if other is not tenant))
            if not succeeds:
                errors.add((status, headers, body))
    return figures, errors


@pytest.mark.processes
@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_concurrent_keys_get_no_foreign_payments(service: Service, tenants: list[Tenant], seed: int) -> None:
    requests = times(2_500, long=200_000) // THREADS
    send = partial(send_random_requests, service.base_url, tenants, requests=requests)

    with ThreadPoolExecutor(THREADS) as pool:
        threads = [pool.submit(send, seed=seed + number) for number in range(THREADS)]
        results = [thread.result() for thread in threads]

    figures: Counter[str] = Counter()
    errors = set()
    for figures_of_thread, errors_of_thread in results:
        figures.update(figures_of_thread)
        errors |= errors_of_thread
    report(f"Isolation of four keys, SEED={seed}: {dict(figures)}, {len(errors)} different errors")
    assert (figures["foreign"], figures["unexpected"]) == (0, 0)
    assert sorted(status for status, _, _ in errors) == [400, 404]


@pytest.mark.processes
@pytest.mark.parametrize("path", ["/v2/payments?from={}", "/v2/payments/{}"])
def test_foreign_and_unknown_ids_get_the_same_response_in_the_same_time(
    service: Service, tenants: list[Tenant], path: str
) -> None:
    """Only a long run checks the time: the foreign ID must take longer in about half of the pairs."""
    chance = Random(SEED)  # noqa: S311
    tenant, other_mode, other_organization, _ = tenants
    responses = set()
    differences = []
    with Walker(service.base_url, tenant.key) as walker:
        for number, foreign_id in enumerate([*other_mode.ids[::2], *other_organization.ids[::2]]):
            nanoseconds = {}
            pair = [foreign_id, unknown_id(chance, tenants)]
            for payment_id in pair if number % 2 else reversed(pair):
                before = perf_counter_ns()
                response, body = walker.send(path.format(payment_id), X_Request_ID=REQUEST_ID)
                nanoseconds[payment_id] = perf_counter_ns() - before
                responses.add(comparable(response, body))
            differences.append(nanoseconds[pair[0]] - nanoseconds[pair[1]])

    longer = sum(difference > 0 for difference in differences)
    deviations = (2 * longer - len(differences)) / sqrt(len(differences))
    report(
        f"{path}: a foreign ID took {median(differences) / 1000:+.1f} us (median of {len(differences)} pairs), "
        f"longer in {longer}: {deviations:+.1f} standard deviations from half"
    )
    assert len(responses) == 1
    assert not IS_LONG or abs(deviations) < 4


# In this process, with an ID in every parameter.


@pytest.fixture
def payments(organization: Organization) -> dict[str, str]:
    """Store payments of several owners. Return their IDs, which have the same length, and an unknown ID."""
    PaymentFactory.create(id="pt_mine", organization=organization)
    PaymentFactory.create(id="pt_mode", organization=organization, test=True)
    PaymentFactory.create(id="pt_them", organization=OrganizationFactory.create(id=2))
    return {
        "own": "pt_mine",
        "of the other mode": "pt_mode",
        "of another organization": "pt_them",
        "unknown": "pt_none",
    }


def address_patterns(api: Api, own_id: str) -> Iterator[str]:
    """Yield an address for each parameter of each endpoint, and for an unknown parameter. {} stands for its value."""
    for path, operations in api.get("/docs/openapi.json").json()["paths"].items():
        if "get" not in operations:
            continue
        address = path.replace("{payment_id}", own_id)
        yield f"{address}?id={{}}"
        for parameter in operations["get"]["parameters"]:
            name = "metadata[gte]" if parameter["name"] == "metadata" else parameter["name"]
            yield path.replace(f"{{{name}}}", "{}") if parameter["in"] == "path" else f"{address}?{name}={{}}"


def response_without_id(api: Api, pattern: str, payment_id: str) -> tuple[int, bytes, dict[str, str]]:
    """Return a response without its ETag and without the ID, which links repeat as the value of a filter."""
    response = api.send("GET", pattern.format(payment_id), X_Request_ID=REQUEST_ID)
    headers = {name: value for name, value in response.items() if name != "ETag"}
    return response.status_code, response.content.replace(payment_id.encode(), b""), headers


def test_foreign_and_unknown_ids_get_the_same_response_in_every_parameter(api: Api, payments: dict[str, str]) -> None:
    own_id, *foreign_and_unknown_ids = payments.values()
    patterns = list(address_patterns(api, own_id))

    for pattern in patterns:
        first, *rest = [response_without_id(api, pattern, payment_id) for payment_id in foreign_and_unknown_ids]

        assert rest == [first, first], pattern
        assert first[0] in {400, 404} or b'"count":0' in first[1]
    assert {
        "/v2/payments?limit={}",
        "/v2/payments?from={}",
        "/v2/payments?customerId={}",
        "/v2/payments?metadata[gte]={}",
        "/v2/payments/{}",
    } <= set(patterns)


def test_filters_match_no_foreign_payments(api: Api, organization: Organization) -> None:
    values = {"customer_id": "ct_7", "metadata": '{"order":"7"}', "status": "open", "method": "ideal"}
    PaymentFactory.create(id="pt_mode", organization=organization, test=True, **values)
    PaymentFactory.create(id="pt_them", organization=OrganizationFactory.create(id=2), **values)
    filters = {"customerId": "ct_7", "metadata[order]": "7", "status": "open,pending", "method": "ideal"}

    pages = [api.get(**{name: value}).json() for name, value in filters.items()]

    assert [page["count"] for page in pages] == [0] * len(filters)


READ = re.compile(r'(?:FROM|JOIN) "?payments_payment\b"?')
SCOPE = (
    r"""(?: "?\w+"?)? WHERE """
    r"""\(?"?\w+"?\."mode" = \(?(?:'{key.mode}'|\(SELECT mode FROM api_key\))\)? AND """
    r""""?\w+"?\."organization_id" = """
    r"""\(?(?:{key.organization_id}\b|\(SELECT organization_id FROM api_key\))"""
)

# A condition that is hidden from the planner of PostgreSQL, and a condition in parentheses.
HIDDEN = re.compile("CASE WHEN ((?:(?!CASE).)*?) THEN TRUE ELSE FALSE END")
ENCLOSED = re.compile(r"""\(("?\w+"?\."\w+" = \((?:[^()]*|\(SELECT [^()]*\))\))\)""")

# The subquery `api_key`, which a statement that also reads the key begins with.
KEY = r"""WITH api_key\(.*\) AS MATERIALIZED \(SELECT .* FROM "payments_apikey" WHERE [^()]*\(.*'{key.digest}'\)*\) """


def unscoped_reads(sql: str, key: ApiKey) -> list[str]:
    """Return the SQL after each read of payments that does not begin with the conditions for the key's access."""
    if "FROM api_key" in sql and not re.match(KEY.format(key=key), sql):
        return [sql]
    sql = ENCLOSED.sub(r"\1", HIDDEN.sub(r"\1", sql))
    return [rest for rest in READ.split(sql)[1:] if not re.match(SCOPE.format(key=key), rest)]


@pytest.mark.parametrize("owner", ["own", "of the other mode", "of another organization", "unknown"])
@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("/v2/payments", 1),
        ("/v2/payments?limit=1&from={}", 6),
        ("/v2/payments?limit=1&status=open", 1),
        ("/v2/payments?limit=1&status=open&metadata[a]=b&sort=asc&from={}", 5),
        ("/v2/payments/{}", 1),
        ("/v2/payments?limit=0&from={}", 0),
        ("/v2/payments?id={}", 0),
        ("/v2/payments/{}?limit=1", 0),
    ],
)
def test_every_read_of_payments_is_limited_to_the_access_of_the_key(
    api: Api, payments: dict[str, str], path: str, reads: int, owner: str
) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.send("GET", path.format(payments[owner]))

    statements = [query["sql"] for query in queries]
    assert sum(len(READ.findall(statement)) for statement in statements) == reads
    assert [unscoped_reads(statement, api.key) for statement in statements] == [[]] * len(statements)


@pytest.mark.parametrize(
    "wrong",
    [
        Payment.objects.all(),
        Payment.objects.filter(mode="live"),
        Payment.objects.filter(mode="live", organization_id=2),
        Payment.objects.filter(mode="test", organization_id=1),
        Payment.objects.filter(mode="live", organization_id=1) | Payment.objects.filter(id="pt_1"),
        Payment.objects.filter(mode="live", organization_id=1, id__in=Payment.objects.filter(id="pt_1")),
        Organization.objects.filter(payments__mode="live"),
    ],
)
def test_read_without_the_access_is_caught(key: ApiKey, wrong: Any) -> None:
    with CaptureQueriesContext(connection) as queries:
        list(wrong)

    assert unscoped_reads(queries[-1]["sql"], key)


PACKAGE = ROOT / "payments"

# In the source: the code of a request selects payments only through `visible_to`.

# Code that may select all payments. No request of the API runs it.
UNRESTRICTED = {"admin", "checks.py", "ingest", "management", "migrations"}
MANAGERS = {"objects", "_default_manager", "_base_manager", "payments"}


def unscoped_uses(source: str) -> list[int]:
    """Return the lines that select payments in another way, or pass their model to code that could."""
    tree = ast.parse(source)
    harmless: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="visible_to" | "none", value=ast.Attribute(attr=name, value=model) as manager):
                harmless |= {manager, model} if name in MANAGERS else set()
            case ast.Attribute(attr="visible_to", value=ast.Call(func=ast.Name(id="UnboundPayments"), args=[model])):
                harmless.add(model)
            case ast.Attribute(
                attr="objects",
                value=ast.Name(id="AccessState" | "ApiKey" | "Change" | "ImportTimes" | "Organization" | "SummedDay"),
            ):
                harmless.add(node)
            case ast.Attribute(attr="payments", value=ast.Name(id="total" | "figures" | "row")):
                harmless.add(node)  # a number of payments
            case ast.Expr(value=ast.Constant() as docstring):
                harmless.add(docstring)
            case (
                ast.Subscript(slice=ast.AST() as types)
                | ast.arg(annotation=ast.AST() as types)
                | ast.AnnAssign(annotation=types)
                | ast.FunctionDef(returns=ast.AST() as types)
            ):
                harmless |= {name for name in ast.walk(types) if isinstance(name, ast.Name)}
    return sorted(node.lineno for node in ast.walk(tree) if node not in harmless and is_use_of_payments(node))


def is_use_of_payments(node: ast.AST) -> TypeGuard[ast.expr | ast.alias]:
    match node:
        case ast.Name(id="Payment") | ast.alias(name="Payment", asname=str()):
            return True
        case ast.Attribute(attr=name):
            return name in {"Payment", "get_model", *MANAGERS}
        case ast.Constant(value=str(text)):
            return re.search(r"\bpayments_payment\b|payments__|__payments\b", text) is not None
    return False


def modules_with_unscoped_uses(modules: Iterable[Path]) -> list[str]:
    return [f"{module}:{line}" for module in modules for line in unscoped_uses(module.read_text())]


def test_code_of_a_request_selects_payments_only_through_visible_to() -> None:
    unrestricted = [PACKAGE / name for name in UNRESTRICTED]
    modules = [path for path in PACKAGE.rglob("*.py") if not any(map(path.is_relative_to, unrestricted))]

    assert {PACKAGE / "listing" / "query.py", PACKAGE / "models" / "payment.py", PACKAGE / "api" / "views.py"} <= set(
        modules
    )
    assert modules_with_unscoped_uses(modules) == []


@pytest.mark.parametrize("name", sorted(UNRESTRICTED))
def test_unrestricted_code_needs_its_exception(name: str) -> None:
    path = PACKAGE / name

    assert modules_with_unscoped_uses(path.rglob("*.py") if path.is_dir() else [path]) != []


@pytest.mark.parametrize(
    "wrong",
    [
        "Payment.objects.filter(id=payment_id)",
        "Payment.objects.all().visible_to(key)",
        "Payment.objects.filter(organization=1).none()",
        "models.Payment.objects.get(id=payment_id)",
        "Payment._default_manager.get(id=payment_id)",
        "Payment._base_manager.get(id=payment_id)",
        "type(payment).objects.get(id=payment_id)",
        "payment.refresh(Payment)",
        "get_object_or_404(Payment, id=payment_id)",
        "PaymentQuerySet(Payment).get(id=payment_id)",
        "AllPayments = Payment",
        "from payments.models import Payment as AllPayments",
        "apps.get_model('payments', 'Payment').objects.all()",
        "organization.payments.get(id=payment_id)",
        "key.organization.payments.all()",
        "Organization.objects.values('payments__id')",
        "cursor.execute('SELECT * FROM payments_payment WHERE id = %s', [payment_id])",
        "cursor.execute(f'SELECT * FROM payments_payment WHERE id = {payment_id}')",
        "cursor.execute(f'SELECT * FROM {Payment._meta.db_table}')",
        "rows[Payment.objects.count()]",
        "ApiKey.objects.values('organization__payments')",
    ],
)
def test_source_with_an_unscoped_use_is_caught(wrong: str) -> None:
    assert set(unscoped_uses(f"import this\n{wrong}")) == {2}


@pytest.mark.parametrize(
    "right",
    [
        "Payment.objects.visible_to(key).filter(id=payment_id)",
        "models.Payment.objects.visible_to(key)",
        "organization.payments.visible_to(key)",
        "Payment.objects.none()",
        "ApiKey.objects.filter(pk=1)",
        "Organization.objects.all()",
        "from payments.models import Payment",
        "class PaymentView(GenericAPIView[Payment]): pass",
        "def page(rows: QuerySet[Payment, Row], payment: Payment) -> Payment: first: Payment = rows[0]",
        "def page(): 'Reads the table payments_payment.'",
        "reverse('admin:payments_payment_changelist')",
        "payments = hal.page('payments', [])",
    ],
)
def test_source_without_an_unscoped_use_passes(right: str) -> None:
    assert unscoped_uses(right) == []
