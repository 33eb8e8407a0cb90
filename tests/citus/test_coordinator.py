"""The coordinator: workers answer requests instead of it, and a standby replaces it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.management import call_command

from payments.models import ApiKey
from tests.support.citus import CitusCluster, CitusServer, citus_cluster
from tests.support.connecting import connected_to
from tests.support.lines import lines_with_order
from tests.support.load import CLIENT_SECONDS_MAX, Load
from tests.support.loading import issue_key, store
from tests.support.scale import report
from tests.support.service import Service, Walker
from tests.support.waiting import wait_until

NAME = "payments"
ORGANIZATIONS = range(1, 5)
PAYMENTS = 30
CLIENTS = 4


class Standby(NamedTuple):
    """A cluster whose coordinator has a standby, and a service that knows both."""

    cluster: CitusCluster
    standby: CitusServer
    service: Service
    keys: list[str]

    @property
    def coordinators(self) -> list[CitusServer]:
        return [self.cluster.coordinator, self.standby]


def address(*servers: CitusServer, parameters: str = "") -> str:
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgresql://postgres@{hosts}/{NAME}{parameters}"


def fill(url: str) -> list[str]:
    """Store payments of some organizations, and return a key of each."""
    with connected_to(url):
        for organization in ORGANIZATIONS:
            store(lines_with_order(organization, PAYMENTS, order="first"))
        return [issue_key(organization=organization, mode="live") for organization in ORGANIZATIONS]


@pytest.fixture
def cluster() -> Iterator[CitusCluster]:
    with citus_cluster() as cluster:
        cluster.create_distributed(NAME)
        yield cluster


@pytest.fixture
def with_standby(cluster: CitusCluster, tmp_path: Path) -> Iterator[Standby]:
    standby = CitusServer(cluster.directory / "standby")
    standby.copy(f"postgresql://postgres@127.0.0.1:{cluster.coordinator.port}/postgres")
    standby.start()
    try:
        coordinators = (cluster.coordinator, standby)
        service = Service(
            address(*coordinators, parameters="?target_session_attrs=read-write"),
            settings={"DATABASE_REPLICA_URL": address(standby), "BAD_KEY_LIMIT": ""},
            workers=2,
            log=tmp_path / "log",
        )
        keys = fill(service.database_url)
        position = cluster.coordinator.run(NAME, "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        wait_until(
            lambda: standby.has_replayed(position), seconds_max=CLIENT_SECONDS_MAX, explain=standby.log.read_text
        )
        with service.serving():
            yield Standby(cluster, standby, service, keys)
    finally:
        standby.kill()


def statuses(service: Service, keys: list[str]) -> set[int]:
    """Return the statuses of a list for each key."""
    return {Load(service.port, key).get().status for key in keys}


def promote(cluster: CitusCluster, standby: CitusServer) -> None:
    """Make the standby the coordinator, as docs/citus.md says."""
    assert standby.run("postgres", "SELECT pg_promote()")
    standby.run(
        NAME, "SELECT citus_update_node(nodeid, '127.0.0.1', {}) FROM pg_dist_node WHERE groupid = 0", standby.port
    )


def test_standby_answers_lists_and_replaces_the_coordinator(with_standby: Standby) -> None:
    cluster, standby, service, keys = with_standby
    through_worker = Service(address(cluster.workers[0]), log=service.log)
    with Load(service.port, keys[0]).running(CLIENTS) as load, through_worker.serving():
        load.wait_for_all(200, after=time.monotonic())
        cluster.coordinator.kill()
        load.assert_recovered(repaired_at=time.monotonic())
        assert statuses(service, keys) == {200}
        assert statuses(through_worker, keys) == {503}

        promote(cluster, standby)

        for loaded in (Load(service.port, key) for key in keys):
            loaded.get_until(lambda response: response.status == 200)
        Load(through_worker.port, keys[0]).get_until(lambda response: response.status == 200)
        with connected_to(service.database_url):
            for organization in ORGANIZATIONS:
                assert store(lines_with_order(organization, PAYMENTS, order="second")).changed == PAYMENTS
            ApiKey.objects.filter(organization_id=ORGANIZATIONS[0]).revoke(now=ApiKey.objects.latest("id").created_at)
        load.wait_for_all(401, after=time.monotonic())
    load.report("coordinator failed over")
    report(f"coordinator failed over: statuses {sorted({response.status for response in load.responses})}")


@contextmanager
def connected_to_coordinator(cluster: CitusCluster) -> Iterator[None]:
    with connected_to(cluster.coordinator.url_of(NAME)):
        yield


def test_worker_answers_lists_and_imports(cluster: CitusCluster, tmp_path: Path) -> None:
    keys = fill(cluster.coordinator.url_of(NAME))
    service = Service(cluster.workers[0].url_of(NAME), log=tmp_path / "log")
    with service.serving():
        assert Load(service.port, "", path="/readyz").get().status == 200
        for organization, key in zip(ORGANIZATIONS, keys, strict=True):
            imported = service.import_records(lines_with_order(organization, PAYMENTS, order="second"))
            with Walker(service.base_url, key) as walker:
                pages = list(walker.walk("next", f"{service.base_url}/v2/payments?limit=7"))
            assert imported.changed == PAYMENTS
            assert sum(page["count"] for page in pages) == 2 * PAYMENTS

        with connected_to_coordinator(cluster):
            used = ApiKey.objects.exclude(last_used_at=None).count()
            call_command("revoke_api_key", str(ApiKey.objects.get(organization_id=ORGANIZATIONS[0]).pk), verbosity=0)

        assert used == len(keys)
        assert statuses(service, keys[:1]) == {401}
        assert statuses(service, keys[1:]) == {200}
