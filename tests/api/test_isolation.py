"""No key sees what another's organization or mode holds: not a payment, nor whether there is one."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from http.client import HTTPResponse
from math import sqrt
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

PAYMENTS = times(100, long=2000)  # of each holder of a key
THREADS = 4

# Sent with every request whose answer is compared: an answer may repeat it.
REQUEST_ID = "0123456789abcdef0123456789abcdef"

Answer = tuple[int, tuple[tuple[str, str], ...], bytes]


class Holder(NamedTuple):
    """Somebody who has a key, and to whose payments it leads: each bears the mark on its id and in its text."""

    key: str
    mark: str
    ids: list[str]


@pytest.fixture(scope="module")
def holders(service: Service, django_db_blocker: DjangoDbBlocker) -> list[Holder]:
    """Two organizations in either mode, whose payments lie between each other's."""
    with django_db_blocker.unblock(), connected_to(service.database_url):
        organizations = [Organization.objects.create(id=number, name="Books") for number in (8001, 8002)]
        return [holder(organization, mode) for organization in organizations for mode in Mode.values]


def holder(organization: Organization, mode: str) -> Holder:
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
    return Holder(key, mark, [payment.id for payment in payments])


def unknown_id(chance: Random, holders: list[Holder]) -> str:
    """Return an id that looks like one of theirs."""
    return f"pt_{chance.choice(holders).mark}{chance.randrange(10**6, 10**7)}"


def answer(response: HTTPResponse, body: bytes) -> Answer:
    return response.status, tuple(pair for pair in response.getheaders() if pair[0].lower() != "date"), body


def ask_about_all(
    base_url: str, holders: list[Holder], *, requests: int, seed: int
) -> tuple[Counter[str], set[Answer]]:
    """Ask for lists and records by ids of one's own, of others and of nobody; return figures, and the refusals."""
    chance = Random(seed)  # noqa: S311
    figures: Counter[str] = Counter(foreign=0)
    refusals = set()
    with Walker(base_url, key="") as walker:
        for _ in range(requests):
            asking, other = chance.sample(holders, 2)
            own, foreign = chance.choice(asking.ids), chance.choice(other.ids)
            payment_id = chance.choice([own, own, foreign, unknown_id(chance, holders)])
            pages = f"/v2/payments?limit={chance.randint(1, 60)}"
            path = chance.choice([pages, f"{pages}&from={payment_id}", f"/v2/payments/{payment_id}"])
            walker.key = asking.key

            status, headers, body = answer(*walker.send(path, X_Request_ID=REQUEST_ID))

            is_answered = path == pages or payment_id == own
            expected = 200 if is_answered else 400 if path.startswith(pages) else 404
            figures.update(requests=1, unexpected=status != expected, rows=body.count(b'"resource":"payment"'))
            figures.update(foreign=sum(each.mark.encode() in body for each in holders if each is not asking))
            if not is_answered:
                refusals.add((status, headers, body))
    return figures, refusals


@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_of_four_keys_in_parallel_none_gets_a_row_of_another(
    service: Service, holders: list[Holder], seed: int
) -> None:
    ask = partial(ask_about_all, service.base_url, holders, requests=times(2_500, long=200_000) // THREADS)

    with ThreadPoolExecutor(THREADS) as pool:
        asked = [asking.result() for asking in [pool.submit(ask, seed=seed + each) for each in range(THREADS)]]

    figures: Counter[str] = Counter()
    refusals = set()
    for each, refused in asked:
        figures.update(each)
        refusals |= refused
    report(f"Isolation of four keys, SEED={seed}: {dict(figures)}, {len(refusals)} kinds of refusal")
    assert (figures["foreign"], figures["unexpected"]) == (0, 0)
    assert sorted(status for status, _, _ in refusals) == [400, 404]


@pytest.mark.parametrize("path", ["/v2/payments?from={}", "/v2/payments/{}"])
def test_a_foreign_id_and_an_unknown_one_get_the_same_answer_in_the_same_time(
    service: Service, holders: list[Holder], path: str
) -> None:
    """The time is held to in a long run alone: by whether the foreign id takes longer as often as not."""
    chance = Random(SEED)  # noqa: S311
    asking, other_mode, other_organization, _ = holders
    answers = set()
    differences = []
    with Walker(service.base_url, asking.key) as walker:
        for pair, foreign in enumerate([*other_mode.ids[::2], *other_organization.ids[::2]]):
            nanoseconds = {}
            ids = [foreign, unknown_id(chance, holders)]
            for payment_id in ids if pair % 2 else reversed(ids):
                before = perf_counter_ns()
                response, body = walker.send(path.format(payment_id), X_Request_ID=REQUEST_ID)
                nanoseconds[payment_id] = perf_counter_ns() - before
                answers.add(answer(response, body))
            differences.append(nanoseconds[ids[0]] - nanoseconds[ids[1]])

    longer = sum(difference > 0 for difference in differences)
    deviations = (2 * longer - len(differences)) / sqrt(len(differences))
    report(
        f"{path}: a foreign id took {median(differences) / 1000:+.1f} us (median of {len(differences)} pairs), "
        f"longer in {longer}: {deviations:+.1f} standard deviations from half"
    )
    assert len(answers) == 1
    assert not IS_LONG or abs(deviations) < 4


# In one process, on every parameter there is.


@pytest.fixture
def payments(organization: Organization) -> dict[str, str]:
    """Whose payments there are, by their ids, which are of one length."""
    PaymentFactory.create(id="pt_mine", organization=organization)
    PaymentFactory.create(id="pt_mode", organization=organization, test=True)
    PaymentFactory.create(id="pt_them", organization=OrganizationFactory.create(id=2))
    return {"own": "pt_mine", "other mode's": "pt_mode", "other organization's": "pt_them", "unknown": "pt_none"}


def places_for_an_id(api: Api, own: str) -> Iterator[str]:
    """Yield an address for each parameter of each endpoint, and for one that there is not."""
    for path, operations in api.get("/docs/openapi.json").json()["paths"].items():
        address = path.replace("{payment_id}", own)
        yield f"{address}?id={{}}"
        for parameter in operations["get"]["parameters"]:
            key = "[gte]" if parameter.get("style") == "deepObject" else ""
            name = f"{parameter['name']}{key}"
            yield path.replace(f"{{{name}}}", "{}") if parameter["in"] == "path" else f"{address}?{name}={{}}"


def told(api: Api, place: str, payment_id: str) -> tuple[int, bytes, dict[str, str]]:
    """Return what is answered, but for the id itself, which links repeat where it may be any word."""
    response = api.send("GET", place.format(payment_id), X_Request_ID=REQUEST_ID)
    headers = {name: value for name, value in response.items() if name != "ETag"}
    return response.status_code, response.content.replace(payment_id.encode(), b""), headers


def test_whose_an_id_is_makes_no_difference_to_the_answer_wherever_it_stands(
    api: Api, payments: dict[str, str]
) -> None:
    own, *others = payments.values()
    places = list(places_for_an_id(api, own))

    for place in places:
        first, *rest = [told(api, place, payment_id) for payment_id in others]

        assert rest == [first, first], place
        assert first[0] in {400, 404} or b'"count":0' in first[1]
    assert {
        "/v2/payments?limit={}",
        "/v2/payments?from={}",
        "/v2/payments?customerId={}",
        "/v2/payments?metadata[gte]={}",
        "/v2/payments/{}",
    } <= set(places)


def test_filters_find_nothing_of_others(api: Api, organization: Organization) -> None:
    what = {"customer_id": "ct_7", "metadata": '{"order":"7"}', "status": "open", "method": "ideal"}
    PaymentFactory.create(id="pt_mode", organization=organization, test=True, **what)
    PaymentFactory.create(id="pt_them", organization=OrganizationFactory.create(id=2), **what)
    asked = {"customerId": "ct_7", "metadata[order]": "7", "status": "open,pending", "method": "ideal"}

    pages = [api.get(**{name: value}).json() for name, value in asked.items()]

    assert [page["count"] for page in pages] == [0] * len(asked)


READ = re.compile(r'(?:FROM|JOIN) "?payments_payment\b"?')
SCOPE = (
    r"(?: \w+)? WHERE "
    r"""\(?(?:\w+|"payments_payment")\."mode" = \(?'{key.mode}'\)? AND """
    r"""(?:\w+|"payments_payment")\."organization_id" = \(?{key.organization_id}\b"""
)


def unscoped_reads(sql: str, key: ApiKey) -> list[str]:
    """Return what follows the table's name, wherever that is not first of all the key's mode and organization."""
    return [rest for rest in READ.split(sql)[1:] if not re.match(SCOPE.format(key=key), rest)]


@pytest.mark.parametrize("whose", ["own", "other mode's", "other organization's", "unknown"])
@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("/v2/payments", 1),
        ("/v2/payments?limit=1&from={}", 6),
        ("/v2/payments?limit=1&status=open", 1),
        ("/v2/payments?limit=1&status=open&metadata[a]=b&sort=asc&from={}", 7),
        ("/v2/payments/{}", 1),
        ("/v2/payments?limit=0&from={}", 0),
        ("/v2/payments?id={}", 0),
        ("/v2/payments/{}?limit=1", 0),
    ],
)
def test_every_read_of_payments_names_the_keys_organization_and_mode(
    api: Api, payments: dict[str, str], path: str, reads: int, whose: str
) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.send("GET", path.format(payments[whose]))

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
def test_a_read_that_names_less_is_found_out(key: ApiKey, wrong: Any) -> None:
    with CaptureQueriesContext(connection) as queries:
        list(wrong)

    assert unscoped_reads(queries[-1]["sql"], key)


# In the source: payments are asked for by way of `visible_to` alone.

ELSEWHERE = {"admin", "anonymization.py", "demo.py", "export.py", "ingest", "management", "migrations"}
MANAGERS = {"objects", "_default_manager", "_base_manager", "payments"}


def unscoped_uses(source: str) -> list[int]:
    """Return the lines where payments are asked for otherwise, or their model is handed to something that might."""
    tree = ast.parse(source)
    harmless: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="visible_to" | "none", value=ast.Attribute(attr=manager, value=model) as asked):
                harmless |= {asked, model} if manager in MANAGERS else set()
            case ast.Attribute(attr="objects", value=ast.Name(id="ApiKey" | "Organization" | "SummedDay")):
                harmless.add(node)
            case (
                ast.Subscript(slice=ast.AST() as types)
                | ast.arg(annotation=ast.AST() as types)
                | ast.AnnAssign(annotation=types)
                | ast.FunctionDef(returns=ast.AST() as types)
            ):
                harmless |= {name for name in ast.walk(types) if isinstance(name, ast.Name)}
    return sorted(node.lineno for node in ast.walk(tree) if node not in harmless and asks_for_payments(node))


def asks_for_payments(node: ast.AST) -> TypeGuard[ast.expr | ast.alias]:
    match node:
        case ast.Name(id="Payment") | ast.alias(name="Payment", asname=str()):
            return True
        case ast.Attribute(attr=name):
            return name in {"Payment", "get_model", *MANAGERS}
        case ast.Constant(value=str(text)):
            return re.search(r"\bpayments_payment\b|payments__", text) is not None
    return False


def test_on_a_requests_path_payments_are_asked_for_by_way_of_visible_to_alone() -> None:
    package = ROOT / "payments"
    modules = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in ELSEWHERE]

    found = [f"{path}:{line}" for path in modules for line in unscoped_uses(path.read_text())]

    assert package / "listing.py" in modules
    assert found == []


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
        "Everything = Payment",
        "from payments.models import Payment as Everything",
        "apps.get_model('payments', 'Payment').objects.all()",
        "organization.payments.get(id=payment_id)",
        "key.organization.payments.all()",
        "Organization.objects.values('payments__id')",
        "cursor.execute('SELECT * FROM payments_payment WHERE id = %s', [payment_id])",
        "cursor.execute(f'SELECT * FROM payments_payment WHERE id = {payment_id}')",
        "cursor.execute(f'SELECT * FROM {Payment._meta.db_table}')",
        "rows[Payment.objects.count()]",
    ],
)
def test_a_source_that_asks_for_payments_otherwise_is_found_out(wrong: str) -> None:
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
        "def page(rows: QuerySet[Payment, Row], payment: Payment) -> Payment: found: Payment = rows[0]",
        "reverse('admin:payments_payment_changelist')",
        "payments = hal.page('payments', [])",
    ],
)
def test_a_source_that_does_not_passes(right: str) -> None:
    assert unscoped_uses(right) == []
