"""Lists read on replicas are the primary's, whichever is asked, however far behind, and whatever becomes of it."""

import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from pytest_django import DjangoDbBlocker

from payments.access.authentication import find_key
from payments.api.pagination import fetch_page
from payments.api_keys import new_key
from payments.database.postgresql.base import CONNECT_SECONDS_WITH_FAILOVER
from payments.ingest import import_payments
from payments.listing import Listing
from payments.models import ApiKey, Organization
from payments.rows import Row
from payments.runtime.database_errors import is_timeout
from payments.runtime.process import process
from payments.runtime.servers import REPLICA
from payments_site.environment import database
from tests.support.connecting import connected_to
from tests.support.lines import line, source
from tests.support.load import STEADY_ANSWERS, Load
from tests.support.postgresql import BreakablePostgresql, Cluster, cluster
from tests.support.scale import SEED, times
from tests.support.scrape import total
from tests.support.service import Service, Walker
from tests.support.walks import walk_while_two_write

USER = NAME = "payments"
ORGANIZATION = 1001
CLIENTS = 8
PAUSE_SECONDS = 0.1  # between questions whether something has happened
LAG_SECONDS_MAX = 5  # more than a busy machine needs
IMPORTED = times(6_000, long=20_000)
SENT_LATER = 500  # the others are more than an import writes at once
SILENT_SECONDS_MAX = 3

KEYS, PAYMENTS = "payments_apikey", "payments_payment"

# Whether an import is under way.
WRITTEN = "SELECT count(*) FROM pg_locks WHERE relation = 'payments_payment'::regclass AND mode = 'RowExclusiveLock'"


class Replicated(NamedTuple):
    """A service, its primary, and the replicas that it reads on."""

    service: Service
    servers: Cluster
    key: str

    def load(self) -> Load:
        return Load(self.service.port, self.key)

    def walker(self) -> Walker:
        return Walker(self.service.base_url, self.key)

    def pages(self, count: int = 8) -> list[list[str]]:
        """Return the first page, asked for on connections of their own, so that every worker has its turn."""
        pages = []
        for _ in range(count):
            with self.walker() as walker:
                page = walker.get(f"{self.service.base_url}/v2/payments?limit=3")
                pages.append([payment["id"] for payment in page["_embedded"]["payments"]])
        return pages


def replicated_service(servers: Cluster, log: Path) -> Service:
    servers.primary.execute(f"CREATE ROLE {USER} LOGIN")
    servers.primary.execute(f"CREATE DATABASE {NAME} OWNER {USER}")
    written = servers.address(user=USER, name=NAME)
    read = servers.address(*servers.replicas, user=USER, name=NAME)
    settings = {
        "DATABASE_REPLICA_URL": f"{read}?target_session_attrs=prefer-standby&load_balance_hosts=random",
        "REPLICA_LAG_SECONDS_MAX": str(LAG_SECONDS_MAX),
        "METRICS": "true",
        "RUNTIME_DIRECTORY": str(log.parent),
    }
    return Service(f"{written}?target_session_attrs=read-write", settings=settings, workers=2, log=log)


@contextmanager
def replicated(directory: Path) -> Iterator[Replicated]:
    with cluster() as servers:
        servers.primary.configure("log_statement", "all")
        service = replicated_service(servers, directory / "log")
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
    with replicated(tmp_path_factory.mktemp("replicated")) as found:
        yield found


class Said:
    """What is asked of servers from now on."""

    def __init__(self, *servers: BreakablePostgresql) -> None:
        self.begun = {server.log: len(server.log.read_text()) for server in servers}

    def tables(self) -> set[str]:
        """Return which of the tables of keys and of payments was read."""
        text = "".join(log.read_text()[begun:] for log, begun in self.begun.items())
        return {table for table in (KEYS, PAYMENTS) if f'FROM "{table}"' in text}


@contextmanager
def paused(*replicas: BreakablePostgresql) -> Iterator[None]:
    """Have replicas see nothing new."""
    for replica in replicas:
        replica.ask("SELECT pg_wal_replay_pause()")
        while replica.ask("SELECT pg_get_wal_replay_pause_state()") != "paused":
            time.sleep(PAUSE_SECONDS)
    try:
        yield
    finally:
        for replica in replicas:
            replica.ask("SELECT pg_wal_replay_resume()")


def test_lists_and_records_are_read_on_replicas_and_keys_on_the_primary(shared: Replicated) -> None:
    wait_until_replicas_are_read(shared)
    on_primary, on_replicas = Said(shared.servers.primary), Said(*shared.servers.replicas)

    (page, *_) = shared.pages()
    with shared.walker() as walker:
        walker.get(f"/v2/payments/{page[0]}")
        walker.get(f"/v2/payments?limit=2&from={page[1]}&status=succeeded")

    assert (on_primary.tables(), on_replicas.tables()) == ({KEYS}, {PAYMENTS})


def test_both_replicas_have_their_share(shared: Replicated) -> None:
    said = {replica.port: Said(replica) for replica in shared.servers.replicas}

    for _ in range(20):
        end_sessions(*shared.servers.replicas)
        shared.pages(2)

    assert [each.tables() for each in said.values()] == [{PAYMENTS}, {PAYMENTS}]


def end_sessions(*servers: BreakablePostgresql) -> None:
    for server in servers:
        server.ask("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE usename = 'payments'")


def test_what_replicas_have_not_seen_is_looked_for_on_the_primary(shared: Replicated, tmp_path: Path) -> None:
    new = ["pt_zNew1", "pt_zNew2"]
    created_at = "2999-01-01T00:00:00.000"
    with paused(*shared.servers.replicas):
        shared.service.import_records(
            line(id=each, organizationId=str(ORGANIZATION), createdAt=created_at) for each in new
        )

        pages = shared.pages()
        with shared.walker() as walker:
            record, _ = walker.ask(f"/v2/payments/{new[0]}")
            from_new, _ = walker.ask(f"/v2/payments?from={new[0]}")
            from_unknown, _ = walker.ask("/v2/payments?from=pt_unknown")
            unknown, _ = walker.ask("/v2/payments/pt_unknown")

    assert {tuple(page[:2]) for page in pages} == {("pt_zNew2", "pt_zNew1")}
    assert (record.status, from_new.status) == (200, 200)
    assert (from_unknown.status, unknown.status) == (400, 404)
    assert total(shared.service, "payments_replica_passed_over_total", reason="not_found") >= len(pages)


def test_a_key_counts_and_is_revoked_at_once(shared: Replicated) -> None:
    with paused(*shared.servers.replicas), Walker(shared.service.base_url, key="") as walker:
        walker.key = shared.service.create_api_key(organization=ORGANIZATION, mode="live")
        made, _ = walker.ask("/v2/payments")
        shared.service.revoke_api_key(walker.key)
        revoked, _ = walker.ask("/v2/payments")

    assert (made.status, revoked.status) == (200, 401)


def test_a_replica_that_lags_too_much_is_passed_over(shared: Replicated) -> None:
    shared.servers.wait_until_replayed()
    with paused(*shared.servers.replicas):
        end = time.monotonic() + 10
        while True:
            shared.servers.primary.ask("SELECT pg_logical_emit_message(false, 'tests', 'something new')")
            on_replicas = Said(*shared.servers.replicas)
            shared.pages()
            if PAYMENTS not in on_replicas.tables():
                break
            assert time.monotonic() < end
            time.sleep(PAUSE_SECONDS)
        assert total(shared.service, "payments_replica_lag_seconds") > LAG_SECONDS_MAX
        assert total(shared.service, "payments_replica_passed_over_total", reason="lag") > 0

    end = time.monotonic() + 10
    while PAYMENTS not in on_replicas.tables():
        shared.pages()
        assert time.monotonic() < end
        time.sleep(PAUSE_SECONDS)


@contextmanager
def changing(replicas: list[BreakablePostgresql], *, seed: int) -> Iterator[None]:
    """Have replicas fall behind and catch up, and their clients change from one to the other, at random."""
    chance = random.Random(seed)  # noqa: S311
    is_over = threading.Event()

    def change() -> None:
        while not is_over.is_set():
            replica = chance.choice(replicas)
            if chance.random() < 0.3:
                end_sessions(replica)
            with paused(replica):
                is_over.wait(chance.uniform(0, 0.5))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_walks_over_changing_replicas_keep_their_promises(shared: Replicated, db: None, seed: int) -> None:
    on_primary, on_replicas = Said(shared.servers.primary), Said(*shared.servers.replicas)

    with changing(shared.servers.replicas, seed=seed):
        walk_while_two_write(
            shared.service.base_url, shared.service.database_url, walks=times(100, long=20_000), seed=seed
        )

    assert PAYMENTS in on_primary.tables() & on_replicas.tables()


def ask_as_it_is(listing: Listing, declare: Callable[..., Any], values: dict[str, Any]) -> list[Row] | None:
    """Take a replica's word, however old it is."""
    return process.replica.run(lambda using: declare().rows(using, **values))


@contextmanager
def reading_on(replica: BreakablePostgresql) -> Iterator[None]:
    """Have this thread take that server for the replica."""
    usual = connections[DEFAULT_DB_ALIAS]
    own = database(replica.url.replace("/postgres", f"/{NAME}").replace("postgres@", f"{USER}@"))
    connections[REPLICA] = type(usual)({**usual.settings_dict, **own}, REPLICA)
    try:
        yield
    finally:
        connections[REPLICA].close()
        del connections[REPLICA]


def walk_from_one_to_the_other(shared: Replicated, key: ApiKey, text: str, old: list[str]) -> list[str]:
    """Walk along replicas, one page from each; before the second of them something old arrives."""
    one, two = shared.servers.replicas
    found = []
    with paused(two):
        load(key, *old, created_at="2001-01-01T00:00:00.000")
        reached = shared.servers.primary.ask("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        while one.ask("SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint") < reached:
            time.sleep(PAUSE_SECONDS)
        start = None
        for replica in (one, two, one, two):
            with reading_on(replica):
                shown = find_key(text, now=datetime.now(UTC))
                assert shown is not None
                page = fetch_page(Listing(shown.access, using=REPLICA, revision=shown.revision), start=start, limit=2)
            found += [row[0] for row in page.rows]
            start = page.next_from
            if start is None:
                break
    return found


def load(key: ApiKey, *ids: str, created_at: str) -> None:
    lines = [line(id=each, organizationId=str(key.organization_id), createdAt=created_at) for each in ids]
    imported = import_payments([source(b"\n".join(lines))], on_refused=lambda place, error: None)
    assert (imported.changed, imported.refused) == (len(ids), 0)


@pytest.fixture
def holder(shared: Replicated, django_db_blocker: DjangoDbBlocker) -> Iterator[tuple[ApiKey, str]]:
    """A key of an organization that has some payments, which both replicas have."""
    connections.settings[REPLICA] = connections.settings[DEFAULT_DB_ALIAS]
    with django_db_blocker.unblock(), connected_to(shared.service.database_url):
        organization = Organization.objects.create(id=random.getrandbits(62), name="Walked")
        key, text = ApiKey.objects.issue(organization, mode="live", name="Tests")
        load(key, *(f"pt_{token_hex(8)}" for _ in range(3)), created_at="2020-01-01T00:00:00.000")
        shared.servers.wait_until_replayed()
        yield key, text
    del connections.settings[REPLICA]


def test_a_walk_from_a_replica_to_one_that_is_behind_it_leaves_nothing_out(
    shared: Replicated, holder: tuple[ApiKey, str]
) -> None:
    old = [f"pt_{token_hex(8)}" for _ in range(2)]

    found = walk_from_one_to_the_other(shared, *holder, old)

    assert set(old) <= set(found)
    assert len(found) == len(set(found))


def test_a_walk_that_takes_a_replica_at_its_word_is_found_out(
    shared: Replicated, holder: tuple[ApiKey, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Listing, "current_rows", ask_as_it_is)
    old = [f"pt_{token_hex(8)}" for _ in range(2)]

    found = walk_from_one_to_the_other(shared, *holder, old)

    assert set(old) - set(found)


def test_where_the_primary_ends_after_its_word_on_the_key_a_replica_is_taken_at_its_word(
    shared: Replicated, holder: tuple[ApiKey, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.primary.breaker, "retry_at", 0.0)
    key, text = holder
    replica, _ = shared.servers.replicas
    with paused(replica), reading_on(replica):
        load(key, f"pt_{token_hex(8)}", created_at="2020-01-01T00:00:00.000")
        shown = find_key(text, now=datetime.now(UTC))
        assert shown is not None
        end_sessions(shared.servers.primary)

        page = fetch_page(Listing(shown.access, using=REPLICA, revision=shown.revision), start=None, limit=10)

    assert shown.revision is not None
    assert len(page.rows) == 3


def test_a_replica_that_is_asked_too_much_is_not_taken_for_one_that_says_nothing(
    shared: Replicated, holder: tuple[ApiKey, str]
) -> None:
    with reading_on(shared.servers.replicas[0]), process.deadlines.database:
        time.sleep(CONNECT_SECONDS_WITH_FAILOVER)  # as long as connecting may take

        with pytest.raises(OperationalError) as raised:
            process.replica.run(lambda alias: connections[alias].cursor().execute("SELECT pg_sleep(10)"))

    assert is_timeout(raised.value)


@pytest.mark.parametrize("end", [BreakablePostgresql.stop_immediately, BreakablePostgresql.kill])
def test_a_replica_that_ends_is_not_missed(shared: Replicated, end: Callable[[BreakablePostgresql], None]) -> None:
    with shared.load().of(CLIENTS) as load:
        for _ in range(times(1, long=10)):
            for replica in shared.servers.replicas:
                load.wait_for(200, begun_after=time.monotonic())
                end(replica)
                load.wait_for_each(200, begun_after=time.monotonic(), count=STEADY_ANSWERS)
                replica.start()

    assert {answer.status for answer in load.answers} == {200}
    load.tell(f"a replica, {end.__name__}")


def test_when_both_replicas_have_ended_the_primary_serves_until_they_are_back(shared: Replicated) -> None:
    with shared.load().of(CLIENTS) as load:
        load.wait_for(200, begun_after=time.monotonic())
        for replica in shared.servers.replicas:
            replica.kill()
        time.sleep(0.5)
        on_primary = Said(shared.servers.primary)
        load.wait_for(200, begun_after=time.monotonic())
        for replica in shared.servers.replicas:
            replica.start()

        on_replicas = Said(*shared.servers.replicas)
        end = time.monotonic() + 10
        while PAYMENTS not in on_replicas.tables():
            assert time.monotonic() < end
            time.sleep(PAUSE_SECONDS)

    assert {answer.status for answer in load.answers} == {200}
    assert PAYMENTS in on_primary.tables()
    assert total(shared.service, "payments_replica_passed_over_total", reason="away") > 0


def test_while_replicas_say_nothing_the_primary_is_asked(shared: Replicated) -> None:
    with shared.load().of(CLIENTS) as load:
        load.wait_for(200, begun_after=time.monotonic())
        for replica in shared.servers.replicas:
            replica.freeze()
        load.wait_for_each(200, begun_after=time.monotonic(), count=STEADY_ANSWERS)
        for replica in shared.servers.replicas:
            replica.thaw()

    assert {answer.status for answer in load.answers} == {200}
    load.assert_in_time(seconds_max=SILENT_SECONDS_MAX)
    load.tell("frozen replicas")


def wait_until_replicas_are_read(shared: Replicated) -> None:
    """Wait until every worker has forgotten that they were away."""
    end = time.monotonic() + 20
    while True:
        on_primary = Said(shared.servers.primary)
        shared.pages()
        if PAYMENTS not in on_primary.tables():
            return
        assert time.monotonic() < end
        time.sleep(PAUSE_SECONDS)


def test_while_the_primary_says_nothing_replicas_are_read(shared: Replicated) -> None:
    wait_until_replicas_are_read(shared)
    with shared.load().of(CLIENTS) as load:
        load.wait_for(200, begun_after=time.monotonic())
        shared.servers.primary.freeze()
        load.wait_for_each(200, begun_after=time.monotonic(), count=STEADY_ANSWERS)
        shared.servers.primary.thaw()
        load.wait_for_each(200, begun_after=time.monotonic(), count=STEADY_ANSWERS)

    assert {answer.status for answer in load.answers} == {200}
    load.assert_in_time(seconds_max=SILENT_SECONDS_MAX)
    load.tell("a frozen primary")


def test_what_only_the_primary_could_tell_keeps_no_page_from_others(shared: Replicated) -> None:
    with shared.walker() as walker:
        end = time.monotonic() + 20
        while walker.get("/readyz")["status"] != "ok":  # the worker has missed the primary before
            assert time.monotonic() < end
            time.sleep(PAUSE_SECONDS)
        shared.servers.primary.freeze()
        try:
            from_unknown, _ = walker.ask("/v2/payments?from=pt_unknown")
            page, _ = walker.ask("/v2/payments")
        finally:
            shared.servers.primary.thaw()

    assert (from_unknown.status, page.status) == (503, 200)


@pytest.fixture
def doomed(shared: Replicated) -> Replicated:
    """The servers whose primary this module's last test kills. A replica has what the primary has acknowledged."""
    shared.servers.primary.configure("synchronous_standby_names", "ANY 1 (*)")
    wait_until_replicas_are_read(shared)
    return shared


class Importer:
    """Somebody who imports a few payments again and again, and keeps what was acknowledged."""

    def __init__(self, service: Service, file: Path) -> None:
        self.service = service
        self.file = file
        self.acknowledged: list[str] = []
        self.refusals: list[str] = []

    def import_some(self) -> bool:
        new = [f"pt_{token_hex(8)}" for _ in range(5)]
        self.file.write_bytes(b"\n".join(line(id=each, organizationId=str(ORGANIZATION)) for each in new))
        done = self.service.run("import_payments", str(self.file))
        if done.returncode == 0:
            self.acknowledged += new
        else:
            self.refusals.append(done.stderr)
        return done.returncode == 0


def test_a_primary_that_is_lost_costs_no_read_and_nothing_that_was_acknowledged(
    doomed: Replicated, tmp_path: Path
) -> None:
    service, cluster = doomed.service, doomed.servers
    importer = Importer(service, tmp_path / "some.jsonl")
    all_of_it = [line(id=f"pt_{token_hex(8)}", organizationId=str(ORGANIZATION)) + b"\n" for _ in range(IMPORTED)]
    with doomed.load().of(CLIENTS) as load, doomed.walker() as walker:
        assert importer.import_some()
        cut_off = service.popen("import_payments", "-", stdin=subprocess.PIPE)
        assert cut_off.stdin is not None
        cut_off.stdin.writelines(all_of_it[:-SENT_LATER])
        cut_off.stdin.flush()
        while not cluster.primary.ask(WRITTEN, name=NAME):
            time.sleep(PAUSE_SECONDS)

        cluster.primary.kill()

        _, words = cut_off.communicate(b"".join(all_of_it[-SENT_LATER:]))
        assert (cut_off.returncode, b"nothing was changed" in words) == (1, True), words
        assert not importer.import_some()
        ready, told = walker.ask("/readyz")
        from_unknown, _ = walker.ask("/v2/payments?from=pt_unknown")
        assert (ready.status, from_unknown.status) == (200, 503), told
        with Walker(service.base_url, key=new_key("live")) as stranger:
            unknown_key, _ = stranger.ask("/v2/payments")
        assert unknown_key.status == 503  # it may be a new one

        cluster.promote()

        assert importer.import_some()
        again = tmp_path / "again.jsonl"
        again.write_bytes(b"".join(all_of_it))
        service.manage("import_payments", str(again))
        load.wait_for(200, begun_after=time.monotonic())

    assert {answer.status for answer in load.answers} == {200}
    load.tell("a primary that is lost")
    with doomed.walker() as walker:
        pages = walker.walk("next", f"{service.base_url}/v2/payments?limit=250")
        found = Counter(payment["id"] for page in pages for payment in page["_embedded"]["payments"])
    assert set(importer.acknowledged) <= found.keys()
    assert set(found.values()) == {1}
    assert len(found) >= IMPORTED
