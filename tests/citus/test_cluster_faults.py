"""Faults of a cluster: stopped and frozen workers, moved shards, and a standby that replaces the coordinator."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from threading import Event
from typing import NamedTuple

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DEFAULT_DB_ALIAS

from payments.database.workers import ask
from payments.models import ApiKey, Organization, Payment
from tests.support.citus import CitusCluster, CitusServer, citus_cluster
from tests.support.connecting import connected_to
from tests.support.lines import issue_key, lines_with_order, store
from tests.support.load import Load
from tests.support.scale import IS_LONG, SEED, report, times
from tests.support.scrape import fetch, total
from tests.support.service import USUAL_LIMITS, Service, Walker
from tests.support.waiting import wait_until
from tests.support.walks import walk_while_two_write

pytestmark = [pytest.mark.only("citus"), pytest.mark.processes]

CLIENTS = 4
FAULTS = times(1, long=10)
FROZEN_SECONDS = times(0, long=10)
MOVES = times(1, long=20)

# The next move drops the shard that the last one left behind. A request that was planned before may then fail.
SECONDS_BETWEEN_MOVES = times(0, long=1)

# The longest response while a worker is stopped, and while it is frozen.
REFUSED_SECONDS_MAX = 1
UNRESPONSIVE_SECONDS_MAX = 3

PAYMENTS = 40

# The coordinators of the cluster. With a standby, the service reads from it.
ONE, STANDBY = "one coordinator", "standby"
ONE_OR_IF_LONG_BOTH = [ONE, STANDBY] if IS_LONG else [ONE]

SHARDS = "SELECT shardid, nodeport FROM citus_shards WHERE table_name = 'payments_payment'::regclass ORDER BY shardid"
MOVE = """
    SELECT citus_move_shard_placement(%(shard)s, '127.0.0.1', %(port)s, '127.0.0.1', %(target)s, 'force_logical')
"""


class Faulty(NamedTuple):
    """A service over a cluster, and an organization with a key on each worker."""

    service: Service
    cluster: CitusCluster
    name: str
    organizations: list[int]
    keys: list[str]

    def load(self, worker: int) -> Load:
        """Return clients that read the list of the organization on a worker."""
        return Load(self.service.port, self.keys[worker])


@pytest.fixture(scope="module")
def faulty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    with faulty_cluster(tmp_path_factory.mktemp("log"), coordinators=request.param) as faulty:
        yield faulty


@contextmanager
def faulty_cluster(directory: Path, *, coordinators: str) -> Iterator[Faulty]:
    with citus_cluster() as cluster:
        url = cluster.create_distributed(name := "payments")
        settings = {**USUAL_LIMITS, "METRICS": "true", "RUNTIME_DIRECTORY": str(directory)}
        if coordinators == STANDBY:
            settings["DATABASE_REPLICA_URL"] = cluster.start_standby().url_of(name)
            url = cluster.coordinators_url(name)
        service = Service(url, settings=settings, workers=2, log=directory / "log")
        faulty = Faulty(service, cluster, name, [], [])
        with connected_to(url):
            for worker in cluster.workers:
                organization = next(number for number in count(1) if cluster.worker_of(number, name=name) is worker)
                store(lines_with_order(organization, PAYMENTS, order="first"))
                faulty.organizations.append(organization)
                faulty.keys.append(issue_key(organization=organization, mode="live"))
        with service.serving():
            yield faulty


def assert_writes_succeed(service: Service, organization: int, *, order: str) -> None:
    """Import payments of an organization, create and revoke a key, and anonymize its payments."""
    with connected_to(service.database_url):
        assert store(lines_with_order(organization, PAYMENTS, order=order)).written == PAYMENTS
        key = issue_key(organization=organization, mode="live")
        with Walker(service.base_url, key) as walker:
            assert walker.send("/v2/payments")[0].status == 200
            call_command("revoke_api_key", str(ApiKey.objects.latest("created_at").pk), verbosity=0)
            assert walker.send("/v2/payments")[0].status == 401
        call_command("anonymize_payments", "--before", "2026-01-01", "--organization", organization, verbosity=0)
        assert not Payment.objects.filter(organization=organization).exclude(metadata="{}").exists()


@contextmanager
def stopped(worker: CitusServer) -> Iterator[None]:
    worker.stop_immediately()
    try:
        yield
    finally:
        worker.start()


@contextmanager
def frozen(worker: CitusServer) -> Iterator[None]:
    with worker.frozen():
        yield


def assert_affects_only_its_organizations(
    faulty: Faulty, fault: Callable[[CitusServer], AbstractContextManager[None]], *, pause: float, seconds_max: float
) -> None:
    """Break the second worker several times while clients read organizations of both workers."""
    with faulty.load(0).running(CLIENTS) as healthy, faulty.load(1).running(CLIENTS) as affected:
        for number in range(FAULTS):
            healthy.wait_for_all(200, after=time.monotonic())
            affected.wait_for_all(200, after=time.monotonic())
            with fault(faulty.cluster.workers[1]):
                affected.wait_for_all(503, after=time.monotonic())
                assert_writes_succeed(faulty.service, faulty.organizations[0], order=f"{fault.__name__}{number}")
                time.sleep(pause)
                healthy.wait_for_all(200, after=time.monotonic(), count=10)
            affected.assert_recovered(repaired_at=time.monotonic())
            assert_writes_succeed(faulty.service, faulty.organizations[1], order=f"{fault.__name__}{number}back")

    healthy.assert_in_time(seconds_max=REFUSED_SECONDS_MAX)
    affected.assert_expected(seconds_max=seconds_max)
    healthy.report(f"other worker {fault.__name__}")
    affected.report(f"worker {fault.__name__}")
    assert healthy.failed == 0


@pytest.mark.parametrize("faulty", ONE_OR_IF_LONG_BOTH, indirect=True)
def test_stopped_worker_affects_only_its_organizations(faulty: Faulty) -> None:
    assert_affects_only_its_organizations(faulty, stopped, pause=0, seconds_max=REFUSED_SECONDS_MAX)


@pytest.mark.parametrize("faulty", ONE_OR_IF_LONG_BOTH, indirect=True)
def test_commands_that_need_the_stopped_worker_report_it_in_one_line(
    faulty: Faulty, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = list(lines_with_order(faulty.organizations[1], 1, order="refused"))
    with stopped(faulty.cluster.workers[1]):
        created = faulty.service.run("create_organization", "77", "--name", "Late")
        imported = faulty.service.run("import_payments", "-", input=lines[0].decode())
        exported = faulty.service.run("export_payments")
        with connected_to(faulty.service.database_url), pytest.raises(CommandError, match="Not all payments were"):
            call_command("anonymize_payments", "--before", "2026-01-01")

    for command in (created, imported, exported):
        [message] = command.stderr.splitlines()
        assert command.returncode == 1
        assert message.startswith("CommandError: The database failed")
        assert "Connection refused" in message
    assert f"Organization {faulty.organizations[1]} (live): the database failed" in capfd.readouterr().err
    with connected_to(faulty.service.database_url):
        assert not Organization.objects.filter(id=77).exists()


def readiness(faulty: Faulty) -> tuple[int, str]:
    return fetch(faulty.service, "/readyz")


@pytest.mark.parametrize("faulty", ONE_OR_IF_LONG_BOTH, indirect=True)
@pytest.mark.parametrize("fault", [stopped, frozen])
def test_readiness_and_metrics_name_the_worker_that_does_not_respond(
    faulty: Faulty, fault: Callable[[CitusServer], AbstractContextManager[None]]
) -> None:
    healthy, lost = (f"127.0.0.1:{worker.port}" for worker in faulty.cluster.workers)
    named = json.dumps({"status": f"These Citus workers do not respond, others do: {lost}."})

    def is_up(worker: str) -> float:
        return total(faulty.service, "payments_citus_worker_up", worker=worker)

    with fault(faulty.cluster.workers[1]):
        wait_until(lambda: readiness(faulty) == (200, named) and is_up(lost) == 0)
        assert is_up(healthy) == 1
        for _ in range(20):
            assert readiness(faulty)[0] == 200
    wait_until(lambda: readiness(faulty) == (200, '{"status": "ok"}') and is_up(lost) == 1)


@pytest.mark.parametrize("faulty", ONE_OR_IF_LONG_BOTH, indirect=True)
def test_role_of_the_service_may_ask_for_workers(faulty: Faulty) -> None:
    """Its role is usually no superuser."""
    faulty.cluster.coordinator.run(faulty.name, "CREATE ROLE asking LOGIN")
    url = faulty.cluster.coordinator.url_of(faulty.name).replace("postgres@", "asking@")

    with connected_to(url):
        assert list(ask(DEFAULT_DB_ALIAS).values()) == [True, True]


@pytest.mark.parametrize("faulty", [ONE, STANDBY], indirect=True)
def test_frozen_worker_affects_only_its_organizations(faulty: Faulty) -> None:
    assert_affects_only_its_organizations(faulty, frozen, pause=FROZEN_SECONDS, seconds_max=UNRESPONSIVE_SECONDS_MAX)


def move_shards(faulty: Faulty, *, done: Event) -> int:
    """Move one shard after the other to the other worker until `done` is set, at least MOVES. Return their number.

    In the end, each shard is where it was.
    """
    ports = [worker.port for worker in faulty.cluster.workers]
    with psycopg.connect(faulty.cluster.coordinator.url_of(faulty.name), autocommit=True) as connection:
        for moved in count():
            shards = connection.execute(SHARDS).fetchall()
            if done.is_set() and moved >= MOVES and moved % (2 * len(shards)) == 0:
                return moved
            shard, port = shards[moved % len(shards)]
            target = next(other for other in ports if other != port)
            connection.execute(MOVE, {"shard": shard, "port": port, "target": target})
            time.sleep(SECONDS_BETWEEN_MOVES)
    raise AssertionError


@pytest.mark.parametrize("faulty", ONE_OR_IF_LONG_BOTH, indirect=True)
def test_walks_and_imports_continue_while_shards_are_moved(faulty: Faulty) -> None:
    done = Event()
    with ThreadPoolExecutor() as pool, faulty.load(0).running(CLIENTS) as healthy:
        mover = pool.submit(move_shards, faulty, done=done)
        try:
            figures = walk_while_two_write(
                faulty.service.base_url, faulty.service.database_url, walks=times(40, long=4000), seed=SEED
            )
        finally:
            done.set()
        moved = mover.result()

    report(f"{moved} moves of shards: {dict(figures)}")
    healthy.report("shards moved")
    assert healthy.failed == 0


def promote(cluster: CitusCluster, name: str) -> None:
    """Make the standby the coordinator, as docs/citus.md says."""
    assert cluster.standby is not None
    assert cluster.standby.run("postgres", "SELECT pg_promote()")
    cluster.standby.run(
        name,
        "SELECT citus_update_node(nodeid, '127.0.0.1', {}) FROM pg_dist_node WHERE groupid = 0",
        cluster.standby.port,
    )


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Faulty]:
    """Return a cluster that the test leaves with one coordinator less."""
    with faulty_cluster(tmp_path, coordinators=STANDBY) as faulty:
        yield faulty


def test_standby_serves_lists_and_replaces_the_coordinator(doomed: Faulty) -> None:
    cluster, service = doomed.cluster, doomed.service
    through_worker = Service(cluster.workers[0].url_of(doomed.name), settings=USUAL_LIMITS, log=service.log)
    with doomed.load(0).running(CLIENTS) as load, through_worker.serving():
        load.wait_for_all(200, after=time.monotonic())
        cluster.coordinator.kill()
        load.assert_recovered(repaired_at=time.monotonic())
        assert doomed.load(1).get().status == 200
        assert Load(through_worker.port, doomed.keys[0]).get().status == 503

        promote(cluster, doomed.name)

        Load(through_worker.port, doomed.keys[0]).get_until(lambda response: response.status == 200)
        for number, organization in enumerate(doomed.organizations):
            assert_writes_succeed(service, organization, order=f"promoted{number}")
        load.wait_for_all(200, after=time.monotonic())

    load.assert_expected(seconds_max=UNRESPONSIVE_SECONDS_MAX)
    load.report("coordinator failed over")
