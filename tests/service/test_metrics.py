"""Metrics are the sums of all processes, also after workers have been killed or replaced."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path
from threading import Event

import pytest
import yaml
from django.test import Client

from payments import __version__
from payments.demo import demo_records
from payments.record import encode
from payments.service.telemetry.routes import method, route
from tests.support.commands import output_of
from tests.support.factories import NOON
from tests.support.load import Load
from tests.support.migrated import fresh_database
from tests.support.postgresql import breakable_postgresql
from tests.support.processes import ROOT
from tests.support.scale import times
from tests.support.scrape import LIST, READ, families, fetch, requests, samples, total
from tests.support.service import START, USUAL_LIMITS, Service, count_started_workers, workers
from tests.support.tools import unavailable
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.once("postgresql")

WORKERS = 2
THREADS = 4  # of each worker
UNRESPONSIVE_SECONDS_MAX = 3
CITUS_METRIC = "payments_citus_worker_up"
REQUESTS = 40
RECORDS = 6_000  # more than an import writes at once
SEEDS = count(3)  # of the payments of a test


def service_with_metrics(directory: Path, url: str, *, workers: int = 1) -> Service:
    """Return a service with metrics, and with a runtime directory of its own."""
    settings = {"METRICS": "true", "RUNTIME_DIRECTORY": str(directory), "WEB_THREADS": str(THREADS)}
    return Service(url, settings=settings, workers=workers, log=directory / "log")


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("observed")
    with (
        fresh_database(directory) as url,
        service_with_metrics(directory, url, workers=WORKERS).serving(START) as service,
    ):
        service.create_demo_payments(100)
        wait_until(lambda: count_started_workers(service) == WORKERS)
        yield service


@pytest.fixture(scope="module")
def key(observed: Service) -> str:
    return observed.create_api_key(organization=1001, mode="live")


@pytest.fixture
def lines() -> list[bytes]:
    """Return lines for an import, with payments of their own for each test."""
    return [encode(record) + b"\n" for record in demo_records(RECORDS, seed=next(SEEDS), until=NOON)]


def send_requests(service: Service, key: str, *, count: int = REQUESTS) -> None:
    for _ in range(count):
        assert fetch(service, f"{LIST}?limit=1", key=key)[0] == 200


@pytest.mark.processes
def test_every_worker_returns_the_sum_of_all_workers(observed: Service, key: str) -> None:
    before = requests(observed, route=LIST, method="GET", status="200")

    send_requests(observed, key)

    sums = {requests(observed, route=LIST, method="GET", status="200") for _ in range(10)}
    assert sums == {before + REQUESTS}


@pytest.mark.processes
def test_killed_worker_keeps_its_counts_but_is_no_worker(observed: Service, key: str) -> None:
    send_requests(observed, key)
    before, started = requests(observed, route=LIST), count_started_workers(observed) + 1

    killed = workers(observed)[0]
    killed.kill()
    killed.wait(timeout=SECONDS_MAX)
    alive, threads = total(observed, "payments_workers"), total(observed, "payments_threads")
    wait_until(lambda: count_started_workers(observed) >= started)
    send_requests(observed, key)

    assert (alive, threads) == (WORKERS - 1, (WORKERS - 1) * THREADS)
    assert total(observed, "payments_workers") == WORKERS
    assert total(observed, "payments_threads") == WORKERS * THREADS
    assert requests(observed, route=LIST) == before + REQUESTS


@pytest.mark.extended
@pytest.mark.processes
def test_replaced_workers_keep_their_counts_but_not_their_gauges(observed: Service, key: str) -> None:
    before = requests(observed, route=LIST)
    replaced, started = set(workers(observed)), count_started_workers(observed) + WORKERS
    observed.server.send_signal(signal.SIGHUP)
    wait_until(lambda: not replaced & set(workers(observed)) and count_started_workers(observed) >= started)
    send_requests(observed, key)

    assert requests(observed, route=LIST) == before + REQUESTS
    assert total(observed, "payments_workers") == WORKERS
    assert len(files(observed, "gauge_livesum_*.db")) == WORKERS


def files(service: Service, pattern: str) -> list[Path]:
    return list(Path(service.settings["RUNTIME_DIRECTORY"], "metrics").glob(pattern))


@pytest.mark.processes
def test_duration_and_database_time_of_requests_are_measured(observed: Service, key: str) -> None:
    send_requests(observed, key, count=5)
    fetch(observed, "/readyz")  # its statements are run by the ORM
    fetch(observed, "/healthz")

    for name in (LIST, "/readyz", "/healthz"):
        assert total(observed, "payments_request_seconds_count", route=name) == requests(observed, route=name)
    database_seconds = total(observed, "payments_database_seconds_sum", route=LIST)
    assert 0 < database_seconds < total(observed, "payments_request_seconds_sum", route=LIST)
    assert total(observed, "payments_database_seconds_count", route=LIST) >= 5
    assert total(observed, "payments_database_seconds_count", route="/readyz") > 0
    assert not list(samples(observed, "payments_database_seconds_count", route="/healthz"))


@pytest.mark.processes
def test_refused_requests_are_counted_by_status(observed: Service, key: str) -> None:
    before = {status: requests(observed, status=status) for status in ("400", "401", "404", "405")}

    fetch(observed, f"{LIST}?limit=0", key=key)
    fetch(observed, LIST)
    fetch(observed, "/v2/refunds", key=key)
    fetch(observed, LIST, method="POST", key=key)

    assert {status: requests(observed, status=status) for status in before} == {
        status: count + 1 for status, count in before.items()
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "/"),
        ("/v2/payments", "/v2/payments"),
        ("/v2/payments/pt_1", "/v2/payments/{payment_id}"),
        ("/v2/payments/", "/v2/payments/{payment_id}"),
        ("/v2/payments/pt_1/refunds", "other"),
        ("/v2/refunds", "other"),
        ("/docs/", "/docs/..."),
        ("/docs/reference/", "/docs/..."),
        ("/admin/payments/payment/", "/admin/..."),
        ("/static/admin/css/base.css", "/static/..."),
        ("/healthz", "/healthz"),
        ("/healthz/", "other"),
        ("/metrics", "/metrics"),
        ("/é\n", "other"),
    ],
)
def test_path_has_one_of_few_routes(path: str, name: str) -> None:
    assert route(path) == name


@pytest.mark.parametrize(("name", "known"), [("GET", "GET"), ("get", "other"), ("BREW", "other"), (None, "other")])
def test_unknown_method_is_other(name: str | None, known: str) -> None:
    assert method(name) == known


@pytest.mark.processes
def test_unknown_paths_and_methods_add_no_label_values(observed: Service) -> None:
    before = requests(observed, route="other", method="other")

    for number in range(20):
        fetch(observed, f"/nothing/{number}", method=f"BREW{number}")

    assert requests(observed, route="other", method="other") == before + 20
    assert len(list(samples(observed, "payments_requests_total", method="other"))) == 1


@pytest.mark.extended
@pytest.mark.processes
def test_running_import_is_counted_and_its_payments_after_the_commit(observed: Service, lines: list[bytes]) -> None:
    read, written = total(observed, READ), total(observed, "payments_import_payments_written_total")
    succeeded = total(observed, "payments_imports_total", outcome="succeeded")
    started_at = time.time()

    importing = start_import(observed, lines[:-1], "--create-organizations", read=read)

    assert total(observed, "payments_imports_running") == 1
    assert started_at < total(observed, "payments_import_running_since_timestamp_seconds") < time.time()
    assert total(observed, "payments_import_payments_written_total") == written

    assert importing.stdin is not None
    importing.stdin.write(lines[-1])
    _, messages = importing.communicate()

    assert messages.startswith(f"{RECORDS} records read: {RECORDS} payments created, ".encode())
    assert total(observed, READ) == read + RECORDS
    assert total(observed, "payments_import_payments_written_total") == written + RECORDS
    assert total(observed, "payments_imports_running") == 0
    assert total(observed, "payments_imports_total", outcome="succeeded") == succeeded + 1
    assert not list(samples(observed, "payments_import_running_since_timestamp_seconds"))
    assert total(observed, "payments_import_last_success_timestamp_seconds") > started_at


# A worker imports, as for a request of the API, and goes on. It stops after each step for a line.
WORKER = """
from types import SimpleNamespace
from payments.runtime.process import process

process.hooks.worker_started()
for _ in range(2):
    with process.hooks.importing(SimpleNamespace(read=1, refused=0, written=1)):
        print(flush=True)
        input()
    print(flush=True)
    input()
"""


@pytest.mark.extended
@pytest.mark.processes
def test_worker_that_imported_has_no_running_import(observed: Service) -> None:
    """It has no start of an import, which would stay after it: an import of a worker is short."""
    names = ("payments_imports_running", "payments_import_last_success_timestamp_seconds")
    worker = observed.popen("shell", "--no-imports", "-c", WORKER, stdin=subprocess.PIPE)
    assert worker.stdin is not None
    assert worker.stdout is not None
    running, successes = [], []
    for _ in range(4):
        worker.stdout.readline()
        running.append(total(observed, names[0]))
        successes.append(total(observed, names[1]))
        assert not list(samples(observed, "payments_import_running_since_timestamp_seconds"))
        worker.stdin.write(b"\n")
        worker.stdin.flush()
    worker.communicate()

    assert running == [1, 0, 1, 0]
    assert successes[0] < successes[1] == successes[2] < successes[3]


@pytest.mark.extended
@pytest.mark.processes
def test_times_of_imports_are_read_at_the_scrape(observed: Service, lines: list[bytes]) -> None:
    started_at = time.time()
    observed.manage("import_payments", "--create-organizations", "-", input=lines[0].decode())

    newest = list(samples(observed, "payments_last_import_newest_timestamp_seconds", way="command"))
    oldest = list(samples(observed, "payments_last_import_oldest_timestamp_seconds", way="command"))
    assert 0 < oldest[0] <= newest[0]
    assert [started_at < value < time.time() for value in newest] == [True]
    assert not list(samples(observed, "payments_last_import_newest_timestamp_seconds", way="api"))
    assert list(samples(observed, "payments_imports_late")) == [0]


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.only("postgresql")
def test_scrape_without_the_database_lacks_only_its_metrics(tmp_path: Path) -> None:
    without_database = {f"payments_{name}" for name in ("workers", "threads", "imports_running", "build_info")}
    with breakable_postgresql() as server:
        service = service_with_metrics(tmp_path, server.url)
        service.settings |= USUAL_LIMITS
        service.migrate()
        with service.serving(START):
            load = Load(service.port, "", path="/metrics")
            assert list(samples(service, "payments_imports_late")) == [0]
            with server.frozen():
                load.responses.append(load.get())
                assert names_of(service) == without_database
            server.kill()
            load.responses.append(load.get())
            assert names_of(service) == without_database
            server.start()
            wait_until(lambda: list(samples(service, "payments_imports_late")) == [0])

    load.assert_in_time(seconds_max=UNRESPONSIVE_SECONDS_MAX)


def names_of(service: Service) -> set[str]:
    """Return the names of the metrics that are not counted, with samples."""
    return {family.name for family in families(service) if family.samples and family.type == "gauge"}


def start_import(service: Service, lines: list[bytes], *options: str, read: float) -> subprocess.Popen[bytes]:
    """Start an import that waits for more records. Wait until it has read the first ones."""
    importing = service.popen("import_payments", "--verbosity", "1", *options, "-", stdin=subprocess.PIPE)
    assert importing.stdin is not None
    importing.stdin.writelines(lines)
    importing.stdin.flush()
    wait_until(lambda: total(service, READ) > read)
    return importing


@pytest.mark.extended
@pytest.mark.processes
def test_refused_import_has_written_no_payments(observed: Service, lines: list[bytes]) -> None:
    written = total(observed, "payments_import_payments_written_total")
    succeeded_at = total(observed, "payments_import_last_success_timestamp_seconds")

    observed.run("import_payments", "-", input="nonsense\n" + lines[0].decode().replace("Order", "Another"))

    assert total(observed, "payments_imports_total", outcome="refused") == 1
    assert total(observed, "payments_import_records_refused_total") == 1
    assert total(observed, "payments_import_payments_written_total") == written
    assert total(observed, "payments_import_last_success_timestamp_seconds") == succeeded_at


@pytest.mark.extended
@pytest.mark.processes
def test_killed_import_is_not_running(observed: Service, lines: list[bytes]) -> None:
    importing = start_import(observed, lines[:-1], "--create-organizations", read=total(observed, READ))
    assert total(observed, "payments_imports_running") == 1

    importing.kill()
    importing.communicate()

    assert total(observed, "payments_imports_running") == 0


@pytest.mark.extended
@pytest.mark.processes
def test_interrupted_import_has_failed(observed: Service, lines: list[bytes]) -> None:
    importing = start_import(observed, lines[:-1], "--create-organizations", read=total(observed, READ))

    importing.send_signal(signal.SIGINT)
    importing.communicate()

    assert importing.returncode == 130
    assert total(observed, "payments_imports_total", outcome="failed") == 1


@pytest.mark.extended
@pytest.mark.processes
def test_replication_lag_ends_with_the_process_that_measured_it(observed: Service) -> None:
    skipped = total(observed, "payments_replica_passed_over_total", reason="lag")
    with process_with_replication_lag(observed):
        assert list(samples(observed, "payments_replica_lag_seconds")) == [1.5]

    assert list(samples(observed, "payments_replica_lag_seconds")) == []
    assert total(observed, "payments_replica_passed_over_total", reason="lag") == skipped + 1


@contextmanager
def process_with_replication_lag(service: Service) -> Iterator[None]:
    program = (
        "from payments.runtime.process import process; process.hooks.replica_lag_measured(1.5);"
        " process.hooks.replica_skipped('lag'); print(); input()"
    )
    reader = service.popen("shell", "--no-imports", "-c", program, stdin=subprocess.PIPE)
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"\n"
    yield
    reader.communicate(b"\n")


@pytest.mark.processes
def test_build_info_has_the_versions(observed: Service) -> None:
    (build,) = [family for family in families(observed) if family.name == "payments_build_info"]

    (sample,) = build.samples
    assert sample.value == 1
    assert sample.labels["version"] == __version__


@pytest.mark.processes
def test_page_allows_get_and_head_only(observed: Service) -> None:
    assert fetch(observed, "/metrics", method="HEAD") == (200, "")
    assert fetch(observed, "/metrics", method="POST")[0] == 405


@pytest.mark.extended
@pytest.mark.processes
def test_restart_resets_all_but_the_last_successful_import(tmp_path: Path, lines: list[bytes]) -> None:
    with fresh_database(tmp_path) as url:
        service = service_with_metrics(tmp_path, url)
        with service.serving(START):
            for _ in range(2):
                service.manage("import_payments", "--create-organizations", "-", input=lines[0].decode())
            assert fetch(service, "/healthz")[0] == 200
            assert (total(service, READ), requests(service, route="/healthz")) == (2, 1)
            succeeded_at = total(service, "payments_import_last_success_timestamp_seconds")

        with service.serving(START):
            assert (total(service, READ), requests(service, route="/healthz")) == (0, 0)
            assert total(service, "payments_import_last_success_timestamp_seconds") == succeeded_at > 0
            assert len(files(service, "gauge_max_*.db")) == 2  # of the worker and of a command


@pytest.mark.extended
@pytest.mark.processes
def test_check_before_a_start_keeps_the_counts_of_all_processes(observed: Service, key: str) -> None:
    send_requests(observed, key)
    before, started = requests(observed, route=LIST), count_started_workers(observed) + 1
    workers(observed)[0].kill()
    wait_until(lambda: count_started_workers(observed) >= started)

    Service(observed.database_url, settings=observed.settings).manage("start", "--check")

    send_requests(observed, key)
    assert requests(observed, route=LIST) == before + REQUESTS


@pytest.mark.extended
@pytest.mark.processes
def test_requests_are_served_without_a_metrics_directory(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url:
        service = service_with_metrics(tmp_path, url)
        (tmp_path / "metrics").touch()
        with service.serving(START):
            assert fetch(service, "/healthz")[0] == 200
            assert fetch(service, "/metrics") == (503, "Metrics are disabled. The log says why.\n")
        assert service.log is not None
        assert service.log.read_text().count("Metrics are disabled") == 1


@pytest.mark.extended
@pytest.mark.processes
def test_import_of_another_user_succeeds_with_one_warning(
    observed: Service, lines: list[bytes], tmp_path: Path
) -> None:
    """The test uses a directory that others can access. The service refuses it like the directory of another user."""
    tmp_path.chmod(0o755)
    service = replace(observed, settings=observed.settings | {"RUNTIME_DIRECTORY": str(tmp_path)})

    done = service.run("import_payments", "--create-organizations", "-", input=lines[0].decode())

    assert done.returncode == 0
    assert done.stderr.count("Metrics are disabled: RUNTIME_DIRECTORY") == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of one megabyte."""
    if os.geteuid() != 0:
        unavailable("Mounting a file system needs root.")
    (disk := tmp_path / "disk").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(2**12))
    yield
    filler.unlink()


@pytest.mark.extended
@pytest.mark.processes
def test_metrics_survive_a_full_disk(small_disk: Path, tmp_path: Path, lines: list[bytes]) -> None:
    with fresh_database(tmp_path) as url:
        service = replace(service_with_metrics(small_disk, url), log=tmp_path / "log")
        with service.serving(START):
            with full(small_disk):
                done = service.run("import_payments", "--create-organizations", "-", input=lines[0].decode())
                assert (done.returncode, done.stderr.count("Metrics are disabled: [Errno 28]")) == (0, 1)
                assert (total(service, "payments_workers"), total(service, READ)) == (1, 0)
            service.manage("import_payments", "-", input=lines[0].decode())
            assert (total(service, "payments_workers"), total(service, READ)) == (1, 1)
            with full(small_disk):
                service.manage("import_payments", "-", input=lines[0].decode())
                assert total(service, READ) == 1
            service.manage("import_payments", "-", input=lines[0].decode())
            assert total(service, READ) == 2

        shutil.rmtree(small_disk / "metrics")
        with full(small_disk), service.serving(START):
            assert fetch(service, "/healthz")[0] == 200
            assert fetch(service, "/metrics") == (503, "Metrics are disabled. The log says why.\n")
            assert service.log is not None
            assert service.log.read_text().count("Metrics are disabled: [Errno 28]") == 1
            (small_disk / "filler").write_bytes(b"")
            service.server.send_signal(signal.SIGHUP)
            wait_until(lambda: has_metrics(service) and total(service, "payments_workers") == 1)


def has_metrics(service: Service) -> bool:
    with suppress(ConnectionError):  # the only worker is being replaced
        return fetch(service, "/metrics")[0] == 200
    return False


# Each process counts some records. Every third is killed, and the others end, while further ones start.
COUNTING = """
import os, signal, sys
from types import SimpleNamespace
from payments.runtime.process import process

def work(number):
    progress = SimpleNamespace(read=0, refused=0, written=0)
    with process.hooks.importing(progress):
        for _ in range(7):
            progress.read += 1
            process.hooks.import_progressed(progress)
        if number % 3 == 0:
            os.kill(os.getpid(), signal.SIGKILL)

for number in range(int(sys.stdin.read())):
    if number >= 4:
        os.wait()
    if os.fork() == 0:
        work(number)
        os._exit(0)
for _ in range(4):
    os.wait()
"""


@pytest.mark.extended
@pytest.mark.processes
def test_ended_imports_leave_their_counts_but_no_files(observed: Service) -> None:
    """Two programs start imports while two clients scrape: no count is lost or doubled, in any scrape."""
    imports = times(60, long=1000)
    before, files_before = total(observed, READ), len(files(observed, "*.db"))
    programs = [observed.popen("shell", "--no-imports", "-c", COUNTING, stdin=subprocess.PIPE) for _ in range(2)]
    done = Event()

    def scrape() -> list[float]:
        return [total(observed, READ) for _ in takewhile(lambda _: not done.is_set(), count())]

    with ThreadPoolExecutor() as pool:
        scrapes = [pool.submit(scrape) for _ in range(2)]
        ended = list(pool.map(lambda program: program.communicate(b"%d" % imports), programs))
        done.set()

    assert [errors for _, errors in ended] == [b""] * 2
    assert total(observed, READ) == before + 2 * imports * 7
    assert all(values.result() == sorted(values.result()) for values in scrapes)
    assert len(files(observed, "counter_*.db")) <= WORKERS + 2 * 4
    assert len(files(observed, "*.db")) <= files_before + 2 * 4 * 3


def test_page_does_not_exist_if_metrics_are_off(client: Client) -> None:
    response = client.get("/metrics")

    assert (response.status_code, response.content) == (404, client.get("/nothing").content)


@pytest.mark.processes
def test_prometheus_client_is_not_imported_if_metrics_are_off(tmp_path: Path) -> None:
    environment = Service(f"sqlite:///{tmp_path}/x", settings={"RUNTIME_DIRECTORY": str(tmp_path)}).environment

    program = "import payments_site.wsgi, sys; print('prometheus_client' in sys.modules)"
    output = output_of([sys.executable, "-c", program], cwd=ROOT, env=environment)

    assert output == "False\n"


@pytest.mark.processes
def test_dashboard_alerts_and_guide_name_exactly_the_metrics(observed: Service, key: str, lines: list[bytes]) -> None:
    send_requests(observed, key, count=1)
    with process_with_replication_lag(observed):
        importing = start_import(observed, lines[:-1], "--create-organizations", read=total(observed, READ))
        names = {sample.name for family in families(observed) for sample in family.samples}
        importing.communicate()
    names |= {sample.name for family in families(observed) for sample in family.samples}

    used = {name for expression in expressions() for name in re.findall(r"\bpayments_\w+", expression)}
    assert used - {CITUS_METRIC} <= names
    assert CITUS_METRIC in {family.name for family in families(observed)}  # its samples need Citus
    assert used >= {name for name in names if name.endswith(("_total", "_sum"))}
    assert len(expressions()) > 30
    assert documented() - {CITUS_METRIC} == {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


def documented() -> set[str]:
    """Return the names of the metrics that the list in the guide explains."""
    guide = (ROOT / "docs/observing.md").read_text().partition("## Metrics")[2]
    return set(re.findall(r"`(payments_\w+)", "\n".join(re.findall(r"^- `payments_.*", guide, re.MULTILINE))))


def expressions() -> list[str]:
    """Return the Prometheus expressions of the dashboard and the alerts."""
    dashboard = json.loads((ROOT / "deploy/grafana/payments.json").read_text())
    rules = yaml.safe_load((ROOT / "deploy/prometheus-rules.yml").read_text())
    return [
        *(target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])),
        *(variable["query"]["query"] for variable in dashboard["templating"]["list"] if "datasource" in variable),
        *(rule["expr"] for group in rules["groups"] for rule in group["rules"]),
    ]


def test_prometheus_scrapes_the_address_of_the_service() -> None:
    configuration = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())

    (job,) = configuration["scrape_configs"]
    assert job.get("metrics_path", "/metrics") == "/metrics"
    assert job["static_configs"] == [{"targets": ["127.0.0.1:8000"]}]
    assert job["job_name"] in " ".join(expressions())
    assert configuration["rule_files"] == ["prometheus-rules.yml"]


@pytest.mark.processes
@pytest.mark.needs("promtool")
def test_promtool_accepts_configuration_rules_and_expressions(tmp_path: Path) -> None:
    rules = [{"record": f"panel_{number}", "expr": expression} for number, expression in enumerate(panel_expressions())]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))

    for kind, file in (("config", ROOT / "deploy/prometheus.yml"), ("rules", tmp_path / "rules.yml")):
        output_of(["promtool", "check", kind, file])


def panel_expressions() -> list[str]:
    """Return the expressions for Prometheus, with values for Grafana's variables."""
    expressions_of_prometheus = (text for text in expressions() if not text.startswith("label_values"))
    return [text.replace("$__rate_interval", "1m") for text in expressions_of_prometheus]
