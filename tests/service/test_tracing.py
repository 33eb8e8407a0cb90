"""Spans, as a receiver gets them by OTLP over HTTP: complete, nested correctly, and without secrets."""

import http.client
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.http import HttpResponse
from django.test import RequestFactory
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from payments.service.telemetry.tracing import TracingHook, flush, summarize
from tests.support.commands import run_command
from tests.support.migrated import fresh_database
from tests.support.processes import ROOT
from tests.support.service import Service
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.once

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = "01", "00"
CARD = "5555555555554444"
EMAIL = "canary.baker@canary.example"


@dataclass
class Receiver:
    """The requests that a receiver got."""

    port: int = 0
    bodies: list[bytes] = field(default_factory=list)

    @property
    def requests(self) -> list[Any]:
        return [ExportTraceServiceRequest.FromString(body) for body in list(self.bodies)]

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, Any]:
        return attributes(self.requests[0].resource_spans[0].resource)

    def wait_for(self, request_id: str) -> Span:
        """Wait for the span of a request, and return it."""
        return wait_until(lambda: self.of_request(request_id), explain=lambda: self.spans)[0]

    def of_request(self, request_id: str) -> list[Span]:
        return [span for span in self.spans if attributes(span).get("payments.request_id") == request_id]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                receiver.bodies.append(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield receiver
        server.shutdown()
        thread.join()


def attributes(owner: Any) -> dict[str, Any]:
    """Return the attributes of a span or a resource."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in owner.attributes}


def traced(url: str, port: int, log: Path, **settings: str) -> Service:
    settings = {"TRACING": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", **settings}
    return Service(url, settings=settings, log=log)


@dataclass
class Traced:
    """A service, the receiver of its spans, and an API key."""

    service: Service
    receiver: Receiver
    key: str

    def get(self, path: str, *, sampled: str = SAMPLED, **headers: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port)
        parent = f"00-{TRACE_ID}-{PARENT_ID}-{sampled}"
        sent = {"Authorization": f"Bearer {self.key}", "traceparent": parent, **headers}
        connection.request("GET", path, headers=sent)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    directory = tmp_path_factory.mktemp("traced")
    with (
        fresh_database(directory) as url,
        receiving() as receiver,
        traced(url, receiver.port, directory / "log", OTEL_BSP_SCHEDULE_DELAY="100").serving() as service,
    ):
        service.create_demo_payments(100)
        yield Traced(service, receiver, service.create_api_key(organization=1001, mode="live"))


@pytest.mark.processes
def test_request_is_a_span_of_the_trace_that_it_names(shop: Traced) -> None:
    assert shop.get("/v2/payments?limit=1", **{"X-Request-ID": "first"}) == 200

    span = shop.receiver.wait_for("first")
    assert span.name == "GET /v2/payments"
    assert span.kind == Span.SPAN_KIND_SERVER
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE_ID, PARENT_ID)
    assert attributes(span) == {
        "http.request.method": "GET",
        "http.route": "/v2/payments",
        "http.response.status_code": 200,
        "url.path": "/v2/payments",
        "url.scheme": "http",
        "payments.request_id": "first",
    }
    assert shop.receiver.resource["service.name"] == "payments"


@pytest.mark.processes
def test_statements_are_child_spans_without_parameters(shop: Traced) -> None:
    shop.get("/v2/payments?limit=1")  # writes the last use of the key
    shop.get("/v2/payments?limit=1", **{"X-Request-ID": "second"})

    request = shop.receiver.wait_for("second")
    children = [span for span in shop.receiver.spans if span.parent_span_id == request.span_id]
    names = [span.name for span in children]
    content = "payments_payment payments_accessstate"
    if shop.service.database_url.startswith("sqlite"):
        assert names == ["SELECT payments_apikey", f"SELECT {content}"]
    else:
        assert names == [f"SELECT payments_apikey {content}"]
    for span in children:
        assert span.kind == Span.SPAN_KIND_CLIENT
        assert span.trace_id == request.trace_id
        assert request.start_time_unix_nano <= span.start_time_unix_nano
        assert span.end_time_unix_nano <= request.end_time_unix_nano
        assert attributes(span)["db.system.name"] == shop.service.database_url.partition(":")[0]
        assert attributes(span)["db.query.summary"] == span.name
    assert "%(digest)s" in attributes(children[0])["db.query.text"]


@pytest.mark.processes
def test_statements_of_the_orm_are_spans(shop: Traced) -> None:
    shop.get("/readyz", **{"X-Request-ID": "ready"})

    request = shop.receiver.wait_for("ready")
    names = {span.name for span in shop.receiver.spans if span.parent_span_id == request.span_id}
    assert "SELECT django_migrations" in names


@pytest.mark.processes
def test_trace_that_is_not_sampled_is_not_sent(shop: Traced) -> None:
    shop.get("/v2/payments?limit=1", sampled=NOT_SAMPLED, **{"X-Request-ID": "unsampled"})
    shop.get("/v2/payments?limit=1", **{"X-Request-ID": "sampled"})

    shop.receiver.wait_for("sampled")
    assert shop.receiver.of_request("unsampled") == []


@pytest.mark.processes
def test_spans_contain_no_secret(shop: Traced) -> None:
    # Secrets in all parts of a request that spans contain: the path, the request ID and the statements.
    for number, path in enumerate(
        (
            f"/v2/payments?metadata[note]=canary-finch&customerId=ct_canaryfinch&from=pt_{CARD}",
            "/v2/payments?metadata[note]=canary-finch&status=open",
            f"/v2/payments/{shop.key}",
            f"/v2/payments/{CARD}",
            f"/nothing/{EMAIL}/Bearer%20canary-finch",
            f"/admin/login/?next=/{CARD}&password=canary-finch",
        )
    ):
        shop.get(path, **{"User-Agent": EMAIL, "Cookie": "sessionid=canary-finch", "X-Request-ID": f"secret-{number}"})
        shop.receiver.wait_for(f"secret-{number}")
    shop.get("/v2/payments", **{"X-Request-ID": shop.key})
    shop.get("/v2/payments", **{"X-Request-ID": "last"})
    shop.receiver.wait_for("last")

    sent = b"".join(shop.receiver.bodies)
    assert b"live_[redacted]" in sent  # in place of the key
    for secret in (shop.key, CARD, EMAIL, "canary-finch", "canaryfinch"):
        assert secret.encode() not in sent


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.mark.parametrize(("status", "code"), [(200, "UNSET"), (404, "UNSET"), (500, "ERROR"), (503, "ERROR")])
def test_only_a_server_error_marks_the_span_as_failed(
    provider: TracerProvider, exporter: InMemorySpanExporter, status: int, code: str
) -> None:
    request = RequestFactory().generic("BREW", "/nothing")

    TracingHook(provider.get_tracer("tests")).request(request, lambda _: HttpResponse(status=status))

    (span,) = exporter.get_finished_spans()
    assert span.name == "HTTP"
    assert span.status.status_code.name == code
    assert span.attributes is not None
    assert span.attributes.get("error.type") == (str(status) if code == "ERROR" else None)
    assert span.attributes["http.request.method"] == "_OTHER"
    assert "http.route" not in span.attributes


def test_span_of_a_failed_statement_lacks_the_error_message(
    provider: TracerProvider, exporter: InMemorySpanExporter, db: None
) -> None:
    def fail() -> None:
        raise OperationalError("canary-finch")

    with pytest.raises(OperationalError):
        TracingHook(provider.get_tracer("tests")).statement("SELECT 1", fail)

    (span,) = exporter.get_finished_spans()
    assert span.status.status_code.value == Status.STATUS_CODE_ERROR
    assert span.attributes is not None
    assert span.attributes["error.type"] == "OperationalError"
    assert "canary-finch" not in span.to_json()


@pytest.mark.parametrize(
    ("sql", "summary"),
    [
        ('SELECT * FROM (SELECT "a" FROM "payments_payment") AS part', "SELECT payments_payment"),
        ('UPDATE "payments_apikey" SET x = %s', "UPDATE payments_apikey"),
        ("insert into payments_day (a) values (%s)", "INSERT payments_day"),
        ("SELECT 1", "SELECT"),
        ("SET LOCAL lock_timeout = '1ms'; SET LOCAL x = y", "SET"),
    ],
)
def test_summary_of_a_statement_is_its_operation_and_table(sql: str, summary: str) -> None:
    assert summarize(sql) == summary


@pytest.mark.extended
@pytest.mark.processes
def test_stopping_worker_sends_its_last_spans(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url, receiving() as receiver:
        with traced(
            url, receiver.port, tmp_path / "log", OTEL_BSP_SCHEDULE_DELAY="600000", OTEL_SERVICE_NAME="shop"
        ).serving() as service:
            assert Traced(service, receiver, "").get("/healthz") == 200
            assert receiver.spans == []

        assert [span.name for span in receiver.spans] == ["GET /healthz"]
        assert receiver.resource["service.name"] == "shop"


class StuckExporter(SpanExporter):
    """An exporter whose receiver does not respond."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.has_returned = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.released.wait(SECONDS_MAX)
        self.has_returned = True
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.released.wait(SECONDS_MAX)


@pytest.mark.extended
def test_unresponsive_receiver_does_not_block_the_stop_of_a_worker() -> None:
    stuck = StuckExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(stuck))
    provider.get_tracer("tests").start_span("of a request").end()

    flush(provider)

    assert not stuck.has_returned
    stuck.released.set()


LOADED = "import payments_site.wsgi, sys; print('opentelemetry' in sys.modules)"
WITHOUT_PACKAGES = "import sys; sys.modules['opentelemetry'] = None; import payments_site.wsgi"


def python(code: str, directory: Path, *, tracing: str) -> subprocess.CompletedProcess[str]:
    environment = {**Service(f"sqlite:///{directory}/x").environment, "TRACING": tracing}
    command = [sys.executable, "-c", code]
    return run_command(command, cwd=ROOT, env=environment)


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.parametrize(("setting", "is_loaded"), [("false", False), ("true", True)])
def test_opentelemetry_is_imported_only_if_tracing_is_enabled(tmp_path: Path, setting: str, is_loaded: bool) -> None:
    assert python(LOADED, tmp_path, tracing=setting).stdout == f"{is_loaded}\n"


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.parametrize(
    ("setting", "status", "message"),
    [("false", 0, ""), ("true", 1, "TRACING: Must be false, or run scripts/install --tracing first.")],
)
def test_tracing_without_its_packages_stops_the_start(tmp_path: Path, setting: str, status: int, message: str) -> None:
    completed = python(WITHOUT_PACKAGES, tmp_path, tracing=setting)

    assert completed.returncode == status
    assert message in completed.stderr
