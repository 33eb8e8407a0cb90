"""What the service tells Prometheus is right, however many workers there are and whatever becomes of them."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from django.test import Client

from payments.demo import demo_records
from payments.record import encode
from payments.service.telemetry.routes import method, route
from tests.support.factories import NOON
from tests.support.migrated import fresh_database
from tests.support.processes import ROOT
from tests.support.scrape import LIST, READ, ask, families, requests, samples, total
from tests.support.service import Service, begun, workers

WORKERS = 2
ASKED = 40
SECONDS_MAX = 30
RECORDS = 6_000  # more than an import writes at once


def measured(directory: Path, url: str, *, workers: int = 1) -> Service:
    """Return a service that counts in a directory of its own."""
    settings = {"METRICS": "true", "RUNTIME_DIRECTORY": str(directory)}
    return Service(url, settings=settings, workers=workers, log=directory / "log")


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("observed")
    with fresh_database(directory) as url, measured(directory, url, workers=WORKERS).serving() as service:
        service.create_demo_payments(100)
        wait_until(lambda: begun(service) == WORKERS)
        yield service


@pytest.fixture(scope="module")
def key(observed: Service) -> str:
    return observed.create_api_key(organization=1001, mode="live")


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return [encode(record) + b"\n" for record in demo_records(RECORDS, seed=3, until=NOON)]


def wait_until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def ask_often(service: Service, key: str, *, times: int = ASKED) -> None:
    for _ in range(times):
        assert ask(service, f"{LIST}?limit=1", key=key)[0] == 200


def test_every_worker_tells_what_all_of_them_have_answered(observed: Service, key: str) -> None:
    before = requests(observed, route=LIST, method="GET", status="200")

    ask_often(observed, key)

    told = {requests(observed, route=LIST, method="GET", status="200") for _ in range(10)}
    assert told == {before + ASKED}


def test_counts_outlive_a_worker_that_was_killed_and_it_is_no_worker_any_more(observed: Service, key: str) -> None:
    ask_often(observed, key)
    before, started = requests(observed, route=LIST), begun(observed) + 1

    killed = workers(observed)[0]
    killed.kill()
    killed.wait(timeout=SECONDS_MAX)
    alive = total(observed, "payments_workers")
    wait_until(lambda: begun(observed) >= started)
    ask_often(observed, key)

    assert alive == WORKERS - 1
    assert total(observed, "payments_workers") == WORKERS
    assert requests(observed, route=LIST) == before + ASKED


def test_counts_outlive_workers_that_are_replaced_and_files_do_not_grow_in_number(observed: Service, key: str) -> None:
    before = requests(observed, route=LIST)
    for _ in range(2):
        replaced, started = set(workers(observed)), begun(observed) + WORKERS
        observed.server.send_signal(signal.SIGHUP)
        wait_until(lambda: not replaced & set(workers(observed)) and begun(observed) >= started)  # noqa: B023
        ask_often(observed, key)

    assert requests(observed, route=LIST) == before + 2 * ASKED
    assert total(observed, "payments_workers") == WORKERS
    assert len(list(Path(observed.settings["RUNTIME_DIRECTORY"]).glob("metrics/counter_*.db"))) <= 2 * WORKERS


def test_a_request_is_timed_and_so_is_its_wait_for_the_database(observed: Service, key: str) -> None:
    ask_often(observed, key, times=5)
    ask(observed, "/readyz")  # which the ORM asks itself
    ask(observed, "/healthz")

    for name in (LIST, "/readyz", "/healthz"):
        assert total(observed, "payments_request_seconds_count", route=name) == requests(observed, route=name)
    waited = total(observed, "payments_database_seconds_sum", route=LIST)
    assert 0 < waited < total(observed, "payments_request_seconds_sum", route=LIST)
    assert total(observed, "payments_database_seconds_count", route=LIST) >= 5
    assert total(observed, "payments_database_seconds_count", route="/readyz") > 0
    assert not list(samples(observed, "payments_database_seconds_count", route="/healthz"))


def test_what_was_refused_is_counted_by_its_status(observed: Service, key: str) -> None:
    before = {status: requests(observed, status=status) for status in ("400", "401", "404", "405")}

    ask(observed, f"{LIST}?limit=0", key=key)
    ask(observed, LIST)
    ask(observed, "/v2/refunds", key=key)
    ask(observed, LIST, method="POST", key=key)

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
def test_routes_are_few(path: str, name: str) -> None:
    assert route(path) == name


@pytest.mark.parametrize(("name", "known"), [("GET", "GET"), ("get", "other"), ("BREW", "other"), (None, "other")])
def test_methods_are_few(name: str | None, known: str) -> None:
    assert method(name) == known


def test_whatever_clients_ask_for_adds_no_names(observed: Service) -> None:
    asked = requests(observed, route="other", method="other")

    for number in range(20):
        ask(observed, f"/nothing/{number}", method=f"BREW{number}")

    assert requests(observed, route="other", method="other") == asked + 20
    assert len(list(samples(observed, "payments_requests_total", method="other"))) == 1


def test_an_import_under_way_is_seen_and_what_it_wrote_once_it_is_committed(
    observed: Service, lines: list[bytes]
) -> None:
    read, written = total(observed, READ), total(observed, "payments_import_payments_written_total")
    succeeded = total(observed, "payments_imports_total", outcome="succeeded")
    begun_at = time.time()

    importing = begin_import(observed, lines[:-1], "--create-organizations", read=read)

    assert total(observed, "payments_imports_running") == 1
    assert begun_at < total(observed, "payments_import_running_since_timestamp_seconds") < time.time()
    assert total(observed, "payments_import_payments_written_total") == written

    assert importing.stdin is not None
    importing.stdin.write(lines[-1])
    _, words = importing.communicate()

    assert words.startswith(f"{RECORDS} records read: {RECORDS} payments written, 0 refused.".encode())
    assert total(observed, READ) == read + RECORDS
    assert total(observed, "payments_import_payments_written_total") == written + RECORDS
    assert total(observed, "payments_imports_running") == 0
    assert total(observed, "payments_imports_total", outcome="succeeded") == succeeded + 1
    assert not list(samples(observed, "payments_import_running_since_timestamp_seconds"))
    assert total(observed, "payments_import_last_success_timestamp_seconds") > begun_at


def begin_import(service: Service, lines: list[bytes], *options: str, read: float) -> subprocess.Popen[bytes]:
    """Begin an import that waits for more records, and wait until some were read."""
    importing = service.popen("import_payments", "--verbosity", "1", *options, "-", stdin=subprocess.PIPE)
    assert importing.stdin is not None
    importing.stdin.writelines(lines)
    importing.stdin.flush()
    wait_until(lambda: total(service, READ) > read)
    return importing


def test_an_import_that_was_refused_has_written_nothing(observed: Service, lines: list[bytes]) -> None:
    written = total(observed, "payments_import_payments_written_total")
    succeeded_at = total(observed, "payments_import_last_success_timestamp_seconds")

    observed.run("import_payments", "-", input="nonsense\n" + lines[0].decode().replace("Order", "Another"))

    assert total(observed, "payments_imports_total", outcome="refused") == 1
    assert total(observed, "payments_import_records_refused_total") == 1
    assert total(observed, "payments_import_payments_written_total") == written
    assert total(observed, "payments_import_last_success_timestamp_seconds") == succeeded_at


def test_an_import_that_was_killed_is_not_under_way(observed: Service, lines: list[bytes]) -> None:
    importing = begin_import(observed, lines[:-1], "--create-organizations", read=total(observed, READ))
    assert total(observed, "payments_imports_running") == 1

    importing.kill()
    importing.communicate()

    assert total(observed, "payments_imports_running") == 0


def test_an_import_that_was_interrupted_has_failed(observed: Service, lines: list[bytes]) -> None:
    importing = begin_import(observed, lines[:-1], "--create-organizations", read=total(observed, READ))

    importing.send_signal(signal.SIGINT)
    importing.communicate()

    assert importing.returncode == 130
    assert total(observed, "payments_imports_total", outcome="failed") == 1


def test_the_lag_of_a_replica_is_told_as_long_as_somebody_knows_it(observed: Service) -> None:
    with a_replica_being_read(observed):
        assert list(samples(observed, "payments_replica_lag_seconds")) == [1.5]

    assert list(samples(observed, "payments_replica_lag_seconds")) == []
    assert total(observed, "payments_replica_passed_over_total", reason="lag") == 1


@contextmanager
def a_replica_being_read(service: Service) -> Iterator[None]:
    tell = (
        "from payments.runtime.process import process; process.hooks.replica_lag_measured(1.5);"
        " process.hooks.replica_skipped('lag'); print(); input()"
    )
    telling = service.popen("shell", "--no-imports", "-c", tell, stdin=subprocess.PIPE)
    assert telling.stdout is not None
    telling.stdout.readline()
    yield
    telling.communicate(b"\n")


def test_it_says_what_it_is(observed: Service) -> None:
    (build,) = [family for family in families(observed) if family.name == "payments_build_info"]

    (told,) = build.samples
    assert told.value == 1
    assert f'version = "{told.labels["version"]}"' in (ROOT / "pyproject.toml").read_text()


def test_it_is_only_read(observed: Service) -> None:
    assert ask(observed, "/metrics", method="HEAD") == (200, "")
    assert ask(observed, "/metrics", method="POST")[0] == 405


def test_a_service_begins_anew_but_knows_when_an_import_last_succeeded(tmp_path: Path, lines: list[bytes]) -> None:
    with fresh_database(tmp_path) as url:
        service = measured(tmp_path, url)
        with service.serving():
            service.manage("import_payments", "--create-organizations", "-", input=lines[0].decode())
            assert ask(service, "/healthz")[0] == 200
            assert (total(service, READ), requests(service, route="/healthz")) == (1, 1)
            succeeded_at = total(service, "payments_import_last_success_timestamp_seconds")

        with service.serving():
            assert (total(service, READ), requests(service, route="/healthz")) == (0, 0)
            assert total(service, "payments_import_last_success_timestamp_seconds") == succeeded_at > 0


def test_another_service_that_starts_takes_nothing_from_one_that_runs(observed: Service, key: str) -> None:
    ask_often(observed, key)
    before = requests(observed, route=LIST)

    observed.manage("forget_metrics")

    assert 0 < requests(observed, route=LIST) <= before
    ask_often(observed, key)
    assert requests(observed, route=LIST) >= ASKED


def test_requests_are_answered_where_nothing_can_be_counted(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url:
        service = measured(tmp_path, url)
        service.manage("forget_metrics")
        (directory,) = tmp_path.glob("metrics")
        directory.rmdir()
        directory.touch()
        with service.serving():
            assert ask(service, "/healthz")[0] == 200
            assert ask(service, "/metrics")[0] == 500
        assert service.log is not None
        assert "Metrics are not kept" in service.log.read_text()


def test_where_it_is_off_there_is_no_such_page(client: Client) -> None:
    response = client.get("/metrics")

    assert (response.status_code, response.content) == (404, client.get("/nothing").content)


@pytest.mark.parametrize(("setting", "is_loaded"), [("false", False), ("true", True)])
def test_what_is_off_is_not_even_loaded(tmp_path: Path, setting: str, is_loaded: bool) -> None:
    environment = {
        **Service(f"sqlite:///{tmp_path}/x").environment,
        "METRICS": setting,
        "RUNTIME_DIRECTORY": str(tmp_path),
    }

    done = subprocess.run(
        [sys.executable, "-c", "import payments_site.wsgi, sys; print('prometheus_client' in sys.modules)"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"{is_loaded}\n"


def test_what_the_dashboard_and_the_alerts_ask_for_is_what_the_service_tells(
    observed: Service, key: str, lines: list[bytes]
) -> None:
    ask_often(observed, key, times=1)
    with a_replica_being_read(observed):
        importing = begin_import(observed, lines[:-1], "--create-organizations", read=total(observed, READ))
        told = {sample.name for family in families(observed) for sample in family.samples}
        importing.communicate()
    told |= {sample.name for family in families(observed) for sample in family.samples}

    asked_for = {name for expression in expressions() for name in re.findall(r"\bpayments_\w+", expression)}
    assert asked_for <= told
    assert asked_for >= {name for name in told if name.endswith(("_total", "_sum"))}
    assert len(expressions()) > 30


def expressions() -> list[str]:
    """Return all that the dashboard and the alerts ask Prometheus for."""
    dashboard = json.loads((ROOT / "deploy/grafana/payments.json").read_text())
    rules = yaml.safe_load((ROOT / "deploy/prometheus-rules.yml").read_text())
    return [
        *(target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])),
        *(variable["query"]["query"] for variable in dashboard["templating"]["list"] if "datasource" in variable),
        *(rule["expr"] for group in rules["groups"] for rule in group["rules"]),
    ]


def test_prometheus_asks_where_the_service_listens() -> None:
    configuration = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())

    (job,) = configuration["scrape_configs"]
    assert job.get("metrics_path", "/metrics") == "/metrics"
    assert job["static_configs"] == [{"targets": ["127.0.0.1:8000"]}]
    assert job["job_name"] in " ".join(expressions())
    assert configuration["rule_files"] == ["prometheus-rules.yml"]


@pytest.mark.needs("promtool")
def test_prometheus_takes_configuration_rules_and_the_dashboards_expressions(tmp_path: Path) -> None:
    rules = [{"record": f"panel_{number}", "expr": asked} for number, asked in enumerate(panel_expressions())]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))

    for kind, file in (("config", ROOT / "deploy/prometheus.yml"), ("rules", tmp_path / "rules.yml")):
        done = subprocess.run(["promtool", "check", kind, file], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def panel_expressions() -> list[str]:
    """Return the dashboard's, with what Grafana puts in for its own names."""
    return [asked.replace("$__rate_interval", "1m") for asked in expressions() if not asked.startswith("label_values")]
