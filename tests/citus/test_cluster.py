"""A cluster responds, imports and exports as plain PostgreSQL does, and each request reads one shard."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from payments.listing.filters import FILTERS
from payments.models import Access, AccessState, ApiKey, ImportRun, ImportTimes, Organization, Payment
from tests.support.api import Api, key_text, payment_ids
from tests.support.factories import ApiKeyFactory
from tests.support.lines import line
from tests.support.load import Load
from tests.support.migrated import worker_urls
from tests.support.service import Service, Walker
from tests.support.shards import example_parameters, uses_distributed_table
from tests.support.sql import execute, fetch_value

pytestmark = pytest.mark.only("citus")

LIST = "/v2/payments"
ADMIN_PAGES = (
    "/admin/",
    "/admin/payments/payment/",
    "/admin/payments/payment/?organization=1002&q=Order",
    "/admin/payments/apikey/",
    "/admin/payments/organization/",
)
SHOPS = (1001, 1002, 1003)

Responses = dict[str, bytes]


class Cluster(NamedTuple):
    """A client of the API and of the admin, over a database with demo payments."""

    client: Client
    apis: list[Api]

    def responses(self) -> Responses:
        """Return the bodies of many responses of the API, by organization and URL."""
        return {
            f"{api.key.organization_id} {path}": api.send("GET", path).content for api in self.apis for path in PATHS
        }


PATHS = (
    LIST,
    f"{LIST}?limit=250",
    f"{LIST}?sort=asc&limit=3",
    *(f"{LIST}?{urlencode(example_parameters(name))}" for name in FILTERS),
)


@pytest.fixture
def local(local_tables: str, client: Client, settings: Settings) -> Cluster:
    """Store demo payments in undistributed tables."""
    call_command("create_demo_payments", count=600, verbosity=0)
    keys = [ApiKeyFactory.create(organization=Organization.objects.get(id=shop)) for shop in SHOPS]
    client.force_login(User.objects.create_superuser("owner"))
    return Cluster(client, [Api(client, key) for key in keys])


@pytest.fixture
def distributed(local: Cluster) -> Cluster:
    call_command("distribute_payments", verbosity=0, stdout=sys.stderr)
    return local


@pytest.fixture
def output(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., bytes]:
    """A function that runs a command and returns its stdout."""

    def run(*arguments: str, **options: Any) -> bytes:
        capfdbinary.readouterr()
        call_command(*arguments, **options)
        sys.stdout.flush()
        return capfdbinary.readouterr().out

    return run


def test_distribution_changes_no_response_and_no_export(local: Cluster, output: Callable[..., bytes]) -> None:
    responses, export = local.responses(), output("export_payments", "--organization", "1001")
    assert len(responses) == len(SHOPS) * len(PATHS)

    call_command("distribute_payments", verbosity=0, stdout=sys.stderr)

    assert local.responses() == responses
    assert output("export_payments", "--organization", "1001") == export
    assert all(b'"count":0' not in responses[f"{shop} {LIST}"] for shop in SHOPS)


def test_walk_returns_every_payment_once(distributed: Cluster) -> None:
    for api in distributed.apis:
        first = api.get(limit=7).json()
        walked = [payment["id"] for page in api.walk("next", first) for payment in page["_embedded"]["payments"]]

        stored = Payment.objects.visible_to(api.key.access).order_by("-created_at", "-id")
        assert walked == list(stored.values_list("id", flat=True))
        assert api.get(f"{LIST}/{walked[0]}").json()["id"] == walked[0]


def test_each_request_reads_one_shard(distributed: Cluster) -> None:
    api = distributed.apis[0]
    start = Payment.objects.visible_to(api.key.access)[3].id
    paths = (*PATHS, f"{LIST}?from={start}&limit=5", f"{LIST}?from={start}&status=open", f"{LIST}/{start}")

    for path in paths:
        with CaptureQueriesContext(connection) as queries:
            assert api.send("GET", path).status_code == 200

        statements = [query["sql"] for query in queries if uses_distributed_table(query["sql"])]
        assert statements
        for statement in statements:
            plan = "\n".join(row[0] for row in execute(f"EXPLAIN (COSTS OFF) {statement}"))
            assert re.findall(r"Task Count: (\d+)", plan) == ["1"], plan


def test_metadata_filter_uses_the_index_of_the_shard(distributed: Cluster) -> None:
    call_command("create_demo_payments", count=10_000, verbosity=0)
    execute("VACUUM (ANALYZE) payments_payment")

    with CaptureQueriesContext(connection) as queries:
        assert distributed.apis[0].send("GET", f"{LIST}?metadata[order]=84820").status_code == 200

    [statement] = [query["sql"] for query in queries if 'FROM "payments_payment"' in query["sql"]]
    assert re.search(r"payment_terms_\d+", "\n".join(row[0] for row in execute(f"EXPLAIN {statement}")))


def test_admin_pages_are_shown(distributed: Cluster) -> None:
    assert {path: distributed.client.get(path).status_code for path in ADMIN_PAGES} == dict.fromkeys(ADMIN_PAGES, 200)


def test_admin_shows_each_payment_with_the_same_id(distributed: Cluster, tmp_path: Path) -> None:
    texts = {str(shop): f"Payment of shop {shop}" for shop in (1001, 1002)}
    for shop, text in texts.items():
        file = tmp_path / shop
        file.write_bytes(line(id="pt_same", organizationId=shop, description=text))
        call_command("import_payments", str(file), verbosity=0)
    address = "/admin/payments/payment/pt_same/change/"

    pages = {shop: distributed.client.get(address, {"organization": shop}).content.decode() for shop in texts}

    assert [[text in page for text in texts.values()] for page in pages.values()] == [[True, False], [False, True]]
    links = {shop: re.findall(r'href="(\?[^"]+)">another payment', page) for shop, page in pages.items()}
    assert links == {"1001": ["?organization=1002&amp;mode=live"], "1002": ["?organization=1001&amp;mode=live"]}


def test_imports_report_what_they_changed(
    distributed: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "payments.jsonl"

    def import_lines(*lines: bytes, refused: bool = False) -> list[str]:
        file.write_bytes(b"\n".join(lines))
        capfd.readouterr()
        if refused:
            with pytest.raises(CommandError, match=r"^2 records read: 2 refused\."):
                call_command("import_payments", str(file), stderr=sys.stderr)
        else:
            call_command("import_payments", str(file), stderr=sys.stderr)
        return capfd.readouterr().err.splitlines()

    def of(organization: int, **changes: Any) -> bytes:
        return line(id=f"pt_{organization}", organizationId=str(organization), **changes)

    revisions = {}
    results = {}
    for name, changes in {
        "new": {},
        "unchanged": {},
        "changed": {"description": "Paid"},
        "other mode": {"mode": "test"},
        "another time": {"createdAt": "2019-01-01T00:00:00.000"},
    }.items():
        is_refused = name in {"other mode", "another time"}
        results[name] = import_lines(of(1001, **changes), of(1002, **changes), refused=is_refused)
        revisions[name] = AccessState.objects.get(organization_id=1001, mode="live").revision

    assert results["new"] == ["2 records read: 2 payments created, 0 changed, 0 unchanged, 0 refused."]
    assert results["unchanged"] == ["2 records read: 0 payments created, 0 changed, 2 unchanged, 0 refused."]
    changed = "2 records read: 0 payments created, 2 changed (description 2), 0 unchanged, 0 refused."
    assert results["changed"] == [changed]
    assert [error.split(": ", 1)[1] for error in results["other mode"]] == [
        "mode: this payment exists in the other mode"
    ] * 2
    assert len(results["another time"]) == 2
    assert revisions["new"] == revisions["unchanged"] != revisions["changed"] == revisions["other mode"]


def test_export_can_be_imported_again_and_gives_the_same_bytes(
    distributed: Cluster, output: Callable[..., bytes], tmp_path: Path
) -> None:
    file = tmp_path / "export.jsonl"
    file.write_bytes(output("export_payments"))

    call_command("import_payments", str(file), verbosity=0)

    assert sorted(output("export_payments").splitlines()) == sorted(file.read_bytes().splitlines())
    assert file.read_bytes().count(b"\n") == 600


def test_all_organizations_are_anonymized(distributed: Cluster, capfd: pytest.CaptureFixture[str]) -> None:
    personal = Payment.objects.exclude(description="", metadata="{}", details=None, customer_id="")
    count = personal.count()

    call_command("anonymize_payments", "--before", "2026-01-01", stderr=sys.stderr)

    message = capfd.readouterr().err
    anonymized = int(message.split()[0])
    assert 0 < anonymized == count - personal.count()


def test_revoked_key_is_refused_by_the_next_request(distributed: Cluster, output: Callable[..., bytes]) -> None:
    text = output("create_api_key", "--organization", "1001", "--mode", "live", "--name", "Shop", verbosity=0)
    headers = {"Authorization": f"Bearer {text.decode().strip()}"}
    before = distributed.client.get(LIST, headers=headers).status_code

    call_command("revoke_api_key", str(ApiKey.objects.latest("id").pk), verbosity=0)

    assert (before, distributed.client.get(LIST, headers=headers).status_code) == (200, 401)


def test_commands_preview_without_a_change(distributed: Cluster, output: Callable[..., bytes]) -> None:
    before = fetch_value("SELECT md5(string_agg(payments_payment::text, '' ORDER BY id)) FROM payments_payment")

    output("anonymize_payments", "--before", "2026-01-01", "--dry-run")
    assert output("distribute_payments", "--dry-run") == b""

    after = fetch_value("SELECT md5(string_agg(payments_payment::text, '' ORDER BY id)) FROM payments_payment")
    assert after == before


@pytest.mark.processes
def test_worker_serves_lists_and_imports(distributed: Cluster, local_tables: str, tmp_path: Path) -> None:
    """The keys are on the coordinator. A worker reads them there."""
    keys = [key_text(api.key) for api in distributed.apis]
    service = Service(worker_urls(local_tables)[0], log=tmp_path / "log")
    new = [line(id=f"pt_{shop}", organizationId=str(shop)) for shop in SHOPS]
    ApiKey.objects.update(last_used_at=None)
    with service.serving():
        assert Load(service.port, "", path="/readyz").get().status == 200
        assert service.import_records(new).written == len(SHOPS)
        assert ImportTimes.objects.filter(command_at=ImportRun.objects.latest("id").started_at).count() == len(SHOPS)
        for shop, key in zip(SHOPS, keys, strict=True):
            with Walker(service.base_url, key) as walker:
                pages = list(walker.walk("next", f"{service.base_url}{LIST}?limit=50"))
            stored = Payment.objects.visible_to(Access(shop, "live")).order_by("-created_at", "-id")
            assert payment_ids(*pages) == list(stored.values_list("id", flat=True))
        assert not ApiKey.objects.filter(last_used_at=None).exists()

        ApiKey.objects.filter(organization_id=SHOPS[0]).revoke(now=timezone.now())

        assert [Load(service.port, key).get().status for key in keys] == [401, 200, 200]
