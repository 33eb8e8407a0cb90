"""Lists that are read from replicas are the same as on the primary, despite replication lag and faults."""

import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.test import Client
from msgspec.structs import replace
from pytest_django import DjangoDbBlocker, Settings

from payments.ingest import import_payments
from payments.listing.tokens import format_token, parse_token
from payments.models import AccessState, ApiKey, Change
from payments.models.identifiers import new_key
from payments.runtime import time_limits
from payments.runtime.database_errors import is_timeout
from payments.runtime.process import process
from payments.runtime.servers import REPLICA
from payments_site.environment import database
from tests.support.api import Api, payment_ids
from tests.support.connecting import connected_to
from tests.support.factories import ApiKeyFactory
from tests.support.following import follow_while_six_write
from tests.support.lines import line, source
from tests.support.list_errors import failing_queries, failing_statements
from tests.support.load import STEADY_RESPONSES, Load
from tests.support.postgresql import BreakablePostgresql, Cluster, cluster
from tests.support.scale import SEED, times
from tests.support.scrape import total
from tests.support.service import USUAL_LIMITS, Service, Walker
from tests.support.waiting import wait_until
from tests.support.walks import walk_while_two_write

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.processes, pytest.mark.extended]

USER = NAME = "payments"
ORGANIZATION = 1001
CLIENTS = 8
LAG_SECONDS_MAX = 5  # more than a busy machine needs
IMPORTED = times(6_000, long=20_000)
SENT_LATER = 500  # the rest is more than the first batch of an import
UNRESPONSIVE_SECONDS_MAX = 3

KEYS, PAYMENTS = "payments_apikey", "payments_payment"

# Not 0 while an import writes.
IMPORTS = "SELECT count(*) FROM pg_locks WHERE relation = 'payments_payment'::regclass AND mode = 'RowExclusiveLock'"


class Replicated(NamedTuple):
    """A service with a primary and two replicas."""

    service: Service
    servers: Cluster
    key: str

    def load(self) -> Load:
        return Load(self.service.port, self.key)

    def walker(self) -> Walker:
        return Walker(self.service.base_url, self.key)

    def tables_of_pages(self) -> tuple[set[str], set[str]]:
        """Fetch pages. Return the tables that were read on the primary and on the replicas."""
        on_primary, on_replicas = StatementLog(self.servers.primary), StatementLog(*self.servers.replicas)
        self.pages()
        return on_primary.tables(), on_replicas.tables()

    def pages(self, count: int = 8) -> list[list[str]]:
        """Fetch the first page `count` times, on new connections, so that every worker serves some of them."""
        pages = []
        for _ in range(count):
            with self.walker() as walker:
                page = walker.get(f"{self.service.base_url}/v2/payments?limit=3")
                pages.append([payment["id"] for payment in page["_embedded"]["payments"]])
        return pages


def replicated_service(servers: Cluster, log: Path, **settings: str) -> Service:
    servers.primary.execute(f"CREATE ROLE {USER} LOGIN")
    servers.primary.execute(f"CREATE DATABASE {NAME} OWNER {USER}")
    written = servers.address(user=USER, name=NAME)
    read = servers.address(*servers.replicas, user=USER, name=NAME)
    settings = {
        **settings,
        "DATABASE_REPLICA_URL": f"{read}?target_session_attrs=prefer-standby&load_balance_hosts=random",
        "REPLICA_LAG_SECONDS_MAX": str(LAG_SECONDS_MAX),
        "METRICS": "true",
        "RUNTIME_DIRECTORY": str(log.parent),
    }
    return Service(f"{written}?target_session_attrs=read-write", settings=settings, workers=2, log=log)


@contextmanager
def replicated(directory: Path, **settings: str) -> Iterator[Replicated]:
    with cluster() as servers:
        servers.primary.configure("log_statement", "all")
        service = replicated_service(servers, directory / "log", **settings)
        service.migrate()
        with service.serving():
            service.create_demo_payments(500)
            key = service.create_api_key(organization=ORGANIZATION, mode="live")
            for replica in servers.replicas:
                replica.configure("log_statement", "all")
            servers.wait_until_replayed()
            yield Replicated(service, servers, key)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    with replicated(tmp_path_factory.mktemp("replicated")) as shared:
        yield shared


@pytest.fixture(scope="module")
def limited(shared: Replicated, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    """The same servers, and a service with the usual time limits, for tests of faults.

    On a busy machine such a service may read a replica because a connection to the primary takes too long.
    """
    directory = tmp_path_factory.mktemp("limited")
    settings = {**shared.service.settings, **USUAL_LIMITS, "RUNTIME_DIRECTORY": str(directory)}
    service = Service(shared.service.database_url, settings=settings, workers=2, log=directory / "log")
    with service.serving():
        yield shared._replace(service=service)


class StatementLog:
    """The statements that servers log from now on."""

    def __init__(self, *servers: BreakablePostgresql) -> None:
        self.starts = {server.log: len(server.log.read_text()) for server in servers}

    def tables(self) -> set[str]:
        """Return the tables that were read: of keys, of payments, or both."""
        text = "".join(log.read_text()[start:] for log, start in self.starts.items())
        return {table for table in (KEYS, PAYMENTS) if f'FROM "{table}"' in text}


def is_paused(replica: BreakablePostgresql) -> bool:
    return bool(replica.fetch_value("SELECT pg_get_wal_replay_pause_state()") == "paused")


@contextmanager
def paused(*replicas: BreakablePostgresql) -> Iterator[None]:
    """Pause the replication of replicas within the block."""
    for replica in replicas:
        replica.fetch_value("SELECT pg_wal_replay_pause()")
        wait_until(partial(is_paused, replica))
    try:
        yield
    finally:
        for replica in replicas:
            replica.fetch_value("SELECT pg_wal_replay_resume()")


@pytest.fixture(autouse=True)
def healthy(request: pytest.FixtureRequest) -> None:
    """Wait until the service reads keys from the primary and payments from replicas, as before the test of a fault."""
    for name in {"shared", "limited"}.intersection(request.fixturenames):
        replicated: Replicated = request.getfixturevalue(name)
        replicated.servers.wait_until_replayed()
        wait_until(partial(reads_replicas, replicated))


def reads_replicas(replicated: Replicated) -> bool:
    return replicated.tables_of_pages() == ({KEYS}, {PAYMENTS})


def test_payments_are_read_from_replicas_and_keys_from_the_primary(shared: Replicated) -> None:
    def tables_read() -> tuple[set[str], set[str]]:
        on_primary, on_replicas = StatementLog(shared.servers.primary), StatementLog(*shared.servers.replicas)
        (page, *_) = shared.pages()
        with shared.walker() as walker:
            walker.get(f"/v2/payments/{page[0]}")
            walker.get(f"/v2/payments?limit=2&from={page[1]}&status=succeeded")
        return on_primary.tables(), on_replicas.tables()

    # A worker whose new connection to a replica is late on a busy machine reads the primary for a second.
    wait_until(lambda: tables_read() == ({KEYS}, {PAYMENTS}), explain=tables_read)


def test_both_replicas_are_read(shared: Replicated) -> None:
    logs = [StatementLog(replica) for replica in shared.servers.replicas]

    for _ in range(20):
        end_sessions(*shared.servers.replicas)
        shared.pages(2)

    assert [log.tables() for log in logs] == [{PAYMENTS}, {PAYMENTS}]


def end_sessions(*servers: BreakablePostgresql) -> None:
    for server in servers:
        server.fetch_value(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE usename = 'payments'"
        )


def test_payments_that_replicas_lack_are_read_from_the_primary(shared: Replicated, tmp_path: Path) -> None:
    new = ["pt_zNew1", "pt_zNew2"]
    created_at = "2999-01-01T00:00:00.000"
    passed_over = partial(total, shared.service, "payments_replica_passed_over_total", reason="behind")
    before = passed_over()
    with paused(*shared.servers.replicas):
        shared.service.import_records(
            line(id=payment_id, organizationId=str(ORGANIZATION), createdAt=created_at) for payment_id in new
        )

        pages = shared.pages()
        with shared.walker() as walker:
            record, _ = walker.send(f"/v2/payments/{new[0]}")
            from_new, _ = walker.send(f"/v2/payments?from={new[0]}")
            from_unknown, _ = walker.send("/v2/payments?from=pt_unknown")
            unknown, _ = walker.send("/v2/payments/pt_unknown")

    assert {tuple(page[:2]) for page in pages} == {("pt_zNew2", "pt_zNew1")}
    assert (record.status, from_new.status) == (200, 200)
    assert (from_unknown.status, unknown.status) == (400, 404)
    assert passed_over() - before >= len(pages)


def test_new_and_revoked_keys_take_effect_immediately(shared: Replicated) -> None:
    with paused(*shared.servers.replicas), Walker(shared.service.base_url, key="") as walker:
        walker.key = shared.service.create_api_key(organization=ORGANIZATION, mode="live")
        created, _ = walker.send("/v2/payments")
        shared.service.revoke_api_key(walker.key)
        revoked, _ = walker.send("/v2/payments")

    assert (created.status, revoked.status) == (200, 401)


def test_replica_that_lags_too_far_behind_is_skipped(shared: Replicated) -> None:
    passed_over = partial(total, shared.service, "payments_replica_passed_over_total", reason="lag")
    before = passed_over()
    with paused(*shared.servers.replicas):
        wait_until(partial(are_pages_read_on_the_primary, shared))
        assert total(shared.service, "payments_replica_lag_seconds") > LAG_SECONDS_MAX
        assert passed_over() > before

    wait_until(partial(are_pages_read_on_a_replica, shared))


def are_pages_read_on_the_primary(shared: Replicated) -> bool:
    """Write to the primary, then read pages. Return whether no replica was read for them."""
    shared.servers.primary.fetch_value("SELECT pg_logical_emit_message(false, 'tests', 'something new')")
    _, on_replicas = shared.tables_of_pages()
    return PAYMENTS not in on_replicas


def are_pages_read_on_a_replica(shared: Replicated) -> bool:
    _, on_replicas = shared.tables_of_pages()
    return PAYMENTS in on_replicas


@contextmanager
def changing(replicas: list[BreakablePostgresql], *, seed: int) -> Iterator[None]:
    """Randomly pause the replication and end connections, so that clients change to another replica."""
    chance = random.Random(seed)  # noqa: S311
    stopped = threading.Event()

    def change() -> None:
        while not stopped.is_set():
            replica = chance.choice(replicas)
            if chance.random() < 0.3:
                end_sessions(replica)
            with paused(replica):
                stopped.wait(chance.uniform(0, 0.5))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_walks_over_changing_replicas_are_correct(shared: Replicated, db: None, seed: int) -> None:
    on_primary, on_replicas = StatementLog(shared.servers.primary), StatementLog(*shared.servers.replicas)

    with changing(shared.servers.replicas, seed=seed):
        walk_while_two_write(
            shared.service.base_url, shared.service.database_url, walks=times(100, long=20_000), seed=seed
        )

    assert PAYMENTS in on_primary.tables() & on_replicas.tables()


def test_clients_of_the_feed_over_changing_replicas_miss_nothing(shared: Replicated, db: None) -> None:
    on_replicas = StatementLog(*shared.servers.replicas)

    with changing(shared.servers.replicas, seed=SEED):
        seconds, slow_import = times(3, long=120), times(1, long=20)
        follow_while_six_write(shared.service, seconds=seconds, slow_import=slow_import, seed=SEED)

    assert PAYMENTS in on_replicas.tables()


@contextmanager
def reading_on(replica: BreakablePostgresql) -> Iterator[None]:
    """Make this thread use that server as its replica within the block. Both servers count as available."""
    primary = connections[DEFAULT_DB_ALIAS]
    settings = database(replica.url.replace("/postgres", f"/{NAME}").replace("postgres@", f"{USER}@"))
    connections[REPLICA] = type(primary)({**primary.settings_dict, **settings}, REPLICA)
    for server in (process.primary, process.replica):
        server.breaker.close()
    try:
        yield
    finally:
        connections[REPLICA].close()
        del connections[REPLICA]


def load(key: ApiKey, *ids: str, created_at: str = "2020-01-01T00:00:00.000") -> None:
    lines = [line(id=payment_id, organizationId=str(key.organization_id), createdAt=created_at) for payment_id in ids]
    imported = import_payments([source(b"\n".join(lines))], on_refused=lambda place, error: None)
    assert (imported.written, imported.refused) == (len(ids), 0)


@pytest.fixture
def walked(shared: Replicated, client: Client, django_db_blocker: DjangoDbBlocker) -> Iterator[Api]:
    """A client in this process. Its organization has three payments, which both replicas have replayed."""
    connections.settings[REPLICA] = connections.settings[DEFAULT_DB_ALIAS]
    with django_db_blocker.unblock(), connected_to(shared.service.database_url):
        key = ApiKeyFactory.create(organization__id=random.getrandbits(62))
        load(key, *(f"pt_{token_hex(8)}" for _ in range(3)))
        shared.servers.wait_until_replayed()
        yield Api(client, key)
    del connections.settings[REPLICA]


def test_walk_that_changes_to_a_lagging_replica_skips_nothing(shared: Replicated, walked: Api) -> None:
    """Old payments arrive at the first replica only. The pages come from alternating replicas."""
    old = [f"pt_{token_hex(8)}" for _ in range(2)]
    one, two = shared.servers.replicas
    with paused(two):
        load(walked.key, *old, created_at="2001-01-01T00:00:00.000")
        position = shared.servers.primary.fetch_value("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        wait_until(partial(one.has_replayed, position))
        with reading_on(one):
            pages = [walked.get(limit=2).json()]
        for replica in (two, one, two):
            if "next" in pages[-1]["_links"]:
                with reading_on(replica):
                    pages.append(walked.follow(pages[-1]["_links"]["next"]["href"]).json())

    ids = payment_ids(*pages)
    assert set(old) <= set(ids)
    assert len(ids) == len(set(ids))


def delete_states(key: ApiKey) -> None:
    for model in (AccessState, Change):
        model.objects.filter(organization_id=key.organization_id).delete()


def test_page_of_payments_without_a_state_is_read_on_the_primary(shared: Replicated, walked: Api) -> None:
    """Two servers without the row may have different payments: SQL did not renew the revision."""
    replica, _ = shared.servers.replicas
    delete_states(walked.key)
    shared.servers.wait_until_replayed()
    with paused(replica), reading_on(replica):
        load(walked.key, f"pt_{token_hex(8)}")
        delete_states(walked.key)

        page = walked.get().json()

    assert page["count"] == 4


@pytest.mark.parametrize("table", [PAYMENTS, "payments_accessstate"])
def test_replica_serves_page_when_primary_fails_after_authentication(
    shared: Replicated, walked: Api, table: str
) -> None:
    replica, _ = shared.servers.replicas
    with paused(replica):
        load(walked.key, f"pt_{token_hex(8)}")
        with reading_on(replica), failing_queries(table, OperationalError("the primary is away")):
            during = walked.get()
        with reading_on(replica):
            after = walked.get()

    assert (during.status_code, after.status_code) == (200, 200)
    assert during.json()["count"] == 3
    assert during["ETag"] != after["ETag"]


def test_totals_are_read_on_the_primary(shared: Replicated, walked: Api) -> None:
    replica, _ = shared.servers.replicas
    day = {"from": "2001-01-01", "to": "2001-01-01", "day": "created"}
    with paused(replica), reading_on(replica):
        before = walked.get("/v2/payments/totals", **day)
        load(walked.key, f"pt_{token_hex(8)}", created_at="2001-01-01T00:00:00.000")
        after = walked.get("/v2/payments/totals", **day)

    assert before.json()["_embedded"]["totals"] == []
    assert [row["payments"] for row in after.json()["_embedded"]["totals"]] == [1]
    assert before["ETag"] != after["ETag"]


FEED = "/v2/payments/changes"


def later(page: Any) -> str:
    """Return the position after a page of the feed."""
    return str(page["_links"]["later"]["href"])


def failing_primary() -> AbstractContextManager[None]:
    """Let each statement on the primary fail, as after the end of its connection."""
    return failing_statements("", OperationalError("the primary is away"))


def test_token_that_a_lagging_replica_lacks_is_looked_up_on_the_primary(shared: Replicated, walked: Api) -> None:
    replica, _ = shared.servers.replicas
    with paused(replica), reading_on(replica):
        load(walked.key, f"pt_{token_hex(8)}")
        end = later(walked.get(FEED, from_="now").json())

        page = walked.follow(end).json()

    assert (page["count"], later(page), "next" in page["_links"]) == (0, end, False)


def test_replica_serves_the_feed_while_the_primary_fails(shared: Replicated, walked: Api) -> None:
    with reading_on(shared.servers.replicas[0]):
        end = later(walked.get(FEED, from_="now").json())
        with failing_primary():
            first = walked.get(FEED, limit=2).json()
            last = walked.follow(end).json()

    assert (first["count"], "next" in first["_links"]) == (2, True)
    assert (last["count"], later(last)) == (0, end)


def test_only_the_primary_says_that_a_token_is_unknown(shared: Replicated, walked: Api) -> None:
    with reading_on(shared.servers.replicas[0]):
        end = later(walked.get(FEED, from_="now").json())
        position = parse_token(end.rpartition("from=")[2])
        unknown = format_token(replace(position, newest=replace(position.newest, change_id=1)))
        with failing_primary():
            during = walked.get(FEED, from_=unknown)

        assert (during.status_code, walked.get(FEED, from_=unknown).status_code) == (503, 410)


def test_slow_query_on_a_replica_is_a_timeout_and_no_outage(
    shared: Replicated, walked: Api, settings: Settings
) -> None:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 2.5

    def is_reported_as_timeout() -> bool:
        with process.deadline:
            time.sleep(time_limits.CONNECTION_BEFORE_FAILOVER.seconds)  # the longest wait for a connection
            try:
                process.replica.run(lambda alias: connections[alias].cursor().execute("SELECT pg_sleep(10)"))
            except OperationalError as error:
                return is_timeout(error)
        return False

    with reading_on(shared.servers.replicas[0]):
        wait_until(is_reported_as_timeout)  # on a busy machine, the server's error can be late


@pytest.mark.parametrize("stop", [BreakablePostgresql.stop_immediately, BreakablePostgresql.kill])
def test_stopped_replica_fails_no_request(limited: Replicated, stop: Callable[[BreakablePostgresql], None]) -> None:
    with limited.load().running(CLIENTS) as load:
        for _ in range(times(1, long=10)):
            for replica in limited.servers.replicas:
                load.wait_for(200, after=time.monotonic())
                stop(replica)
                load.wait_for_all(200, after=time.monotonic(), count=STEADY_RESPONSES)
                replica.start()

    assert {response.status for response in load.responses} == {200}
    load.report(f"a replica, {stop.__name__}")


def test_primary_serves_while_both_replicas_are_down(limited: Replicated) -> None:
    passed_over = partial(total, limited.service, "payments_replica_passed_over_total", reason="away")
    before = passed_over()
    with limited.load().running(CLIENTS) as load:
        load.wait_for(200, after=time.monotonic())
        for replica in limited.servers.replicas:
            replica.kill()
        load.wait_for_all(200, after=time.monotonic(), count=STEADY_RESPONSES)
        on_primary = StatementLog(limited.servers.primary)
        load.wait_for(200, after=time.monotonic())
        for replica in limited.servers.replicas:
            replica.start()

        on_replicas = StatementLog(*limited.servers.replicas)
        wait_until(lambda: PAYMENTS in on_replicas.tables())

    assert {response.status for response in load.responses} == {200}
    assert PAYMENTS in on_primary.tables()
    assert passed_over() > before


def test_primary_serves_while_replicas_do_not_respond(limited: Replicated) -> None:
    with limited.load().running(CLIENTS) as load:
        load.wait_for(200, after=time.monotonic())
        one, two = limited.servers.replicas
        with one.frozen(), two.frozen():
            load.wait_for_all(200, after=time.monotonic(), count=STEADY_RESPONSES)

    assert {response.status for response in load.responses} == {200}
    load.assert_in_time(seconds_max=UNRESPONSIVE_SECONDS_MAX)
    load.report("frozen replicas")


def test_replicas_serve_while_the_primary_does_not_respond(limited: Replicated) -> None:
    with limited.load().running(CLIENTS) as load:
        load.wait_for(200, after=time.monotonic())
        with limited.servers.primary.frozen():
            load.wait_for_all(200, after=time.monotonic(), count=STEADY_RESPONSES)
        load.wait_for_all(200, after=time.monotonic(), count=STEADY_RESPONSES)

    assert {response.status for response in load.responses} == {200}
    load.assert_in_time(seconds_max=UNRESPONSIVE_SECONDS_MAX)
    load.report("a frozen primary")


def test_unknown_payment_without_the_primary_blocks_no_other_page(limited: Replicated) -> None:
    with limited.walker() as walker:
        wait_until(lambda: walker.get("/readyz")["status"] == "ok")  # its circuit breaker may still be open
        with limited.servers.primary.frozen():
            from_unknown, _ = walker.send("/v2/payments?from=pt_unknown")
            page, _ = walker.send("/v2/payments")

    assert (from_unknown.status, page.status) == (503, 200)


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Replicated]:
    """Servers whose primary the test kills. One replica has every change that the primary acknowledged."""
    with replicated(tmp_path, **USUAL_LIMITS) as doomed:
        doomed.servers.primary.configure("synchronous_standby_names", "ANY 1 (*)")
        wait_until(partial(reads_replicas, doomed))
        yield doomed


class Importer:
    """Imports a few payments at a time, and records the acknowledged ones."""

    def __init__(self, service: Service, file: Path) -> None:
        self.service = service
        self.file = file
        self.acknowledged: list[str] = []

    def import_some(self) -> bool:
        new = [f"pt_{token_hex(8)}" for _ in range(5)]
        self.file.write_bytes(b"\n".join(line(id=payment_id, organizationId=str(ORGANIZATION)) for payment_id in new))
        completed = self.service.run("import_payments", str(self.file))
        if completed.returncode == 0:
            self.acknowledged += new
        return completed.returncode == 0


def test_lost_primary_fails_no_read_and_loses_no_acknowledged_payment(doomed: Replicated, tmp_path: Path) -> None:
    service, cluster = doomed.service, doomed.servers
    importer = Importer(service, tmp_path / "some.jsonl")
    records = [line(id=f"pt_{token_hex(8)}", organizationId=str(ORGANIZATION)) + b"\n" for _ in range(IMPORTED)]
    with doomed.load().running(CLIENTS) as load, doomed.walker() as walker:
        assert importer.import_some()
        interrupted = service.popen("import_payments", "-", stdin=subprocess.PIPE)
        assert interrupted.stdin is not None
        interrupted.stdin.writelines(records[:-SENT_LATER])
        interrupted.stdin.flush()
        wait_until(lambda: cluster.primary.fetch_value(IMPORTS, name=NAME))

        cluster.primary.kill()

        _, errors = interrupted.communicate(b"".join(records[-SENT_LATER:]))
        assert (interrupted.returncode, b"nothing was changed" in errors) == (1, True), errors
        assert not importer.import_some()
        ready, body = walker.send("/readyz")
        from_unknown, _ = walker.send("/v2/payments?from=pt_unknown")
        assert (ready.status, from_unknown.status) == (200, 503), body
        with Walker(service.base_url, key=new_key("live")) as other_walker:
            unknown_key, _ = other_walker.send("/v2/payments")
        assert unknown_key.status == 503  # it may be a new key

        cluster.promote()

        assert importer.import_some()
        file = tmp_path / "again.jsonl"
        file.write_bytes(b"".join(records))
        service.manage("import_payments", str(file))
        load.wait_for(200, after=time.monotonic())

    assert [response for response in load.responses if response.status != 200] == []
    load.report("a lost primary")
    with doomed.walker() as walker:
        pages = walker.walk("next", f"{service.base_url}/v2/payments?limit=250")
        counts = Counter(payment["id"] for page in pages for payment in page["_embedded"]["payments"])
    assert set(importer.acknowledged) <= counts.keys()
    assert set(counts.values()) == {1}
    assert len(counts) >= IMPORTED
