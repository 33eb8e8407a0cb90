"""Tracing: a span for each request, with a child span for each of its statements, sent by OTLP over HTTP.

OpenTelemetry's own variables set the receiver and the sampling: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER and
others. Spans are redacted like the log, and contain no parameters of statements.

It uses `multiprocessing.util.Finalize`, which Python does not document: Granian's workers are processes of
multiprocessing, which end without calling `atexit` functions.
"""

import re
import threading
from collections.abc import Callable
from functools import lru_cache
from multiprocessing.util import Finalize

from django.db import Error, connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from payments import __version__
from payments.api import request_ids
from payments.runtime.hooks import Hook, Result
from payments.runtime.process import process
from payments.service.logs import redacted
from payments.service.telemetry.routes import OTHER, method, route

# A worker sends its last spans when it stops. It is killed after five seconds.
FLUSH_SECONDS_MAX = 2

PATH_CHARACTERS_MAX = 500
FIRST_ERROR_STATUS = 500

# OpenTelemetry's name for an unknown method.
UNKNOWN_METHOD = "_OTHER"

TABLE_NAME = re.compile(r'\b(?:FROM|INTO|UPDATE|TABLE)\s+"?(\w+)', re.IGNORECASE | re.ASCII)
SUBQUERY_NAME = re.compile(r"^WITH (\w+)\(")

trace_context = TraceContextTextMapPropagator()


def begin_tracing() -> None:
    """Trace this process's requests and send the spans from a background thread."""
    # The environment overrides our own name and version of the service.
    defaults = {"service.name": "payments", "service.version": __version__}
    resource = Resource.create({**defaults, **OTELResourceDetector().detect().attributes})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    Finalize(None, flush, args=[provider], exitpriority=0)
    process.hooks.register(TracingHook(provider.get_tracer("payments", __version__)))


def flush(provider: TracerProvider) -> None:
    """Send the remaining spans, for at most FLUSH_SECONDS_MAX."""
    thread = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
    thread.start()
    thread.join(FLUSH_SECONDS_MAX)


class TracingHook(Hook):
    """Creates a span for each request and each statement."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def request(self, request: HttpRequest, respond: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
        """Respond within a span. It belongs to the trace that the request names (W3C Trace Context)."""
        known_method, known_route = method(request.method), route(request.path_info)
        name = f"{'HTTP' if known_method == OTHER else known_method} {'' if known_route == OTHER else known_route}"
        with self.tracer.start_as_current_span(
            name.strip(),
            context=trace_context.extract({"traceparent": request.META.get("HTTP_TRACEPARENT", "")}),
            kind=SpanKind.SERVER,
            attributes=request_attributes(request, known_method, known_route),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            response = respond(request)
            span.set_attribute("http.response.status_code", response.status_code)
            if response.status_code >= FIRST_ERROR_STATUS:
                record_error(span, str(response.status_code))
            return response

    def statement(self, sql: str, run: Callable[[], Result]) -> Result:
        name = summarize(sql)
        with self.tracer.start_as_current_span(
            name,
            kind=SpanKind.CLIENT,
            attributes={"db.system.name": connection.vendor, "db.query.text": sql, "db.query.summary": name},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                return run()
            except Error as error:
                record_error(span, type(error).__qualname__)
                raise


def request_attributes(request: HttpRequest, known_method: str, known_route: str) -> dict[str, str]:
    attributes = {
        "http.request.method": UNKNOWN_METHOD if known_method == OTHER else known_method,
        "url.path": redacted(request.path_info[:PATH_CHARACTERS_MAX]),
        "url.scheme": request.scheme or "http",
        "payments.request_id": redacted(request_ids.current.get()),
    }
    return attributes if known_route == OTHER else {**attributes, "http.route": known_route}


@lru_cache
def summarize(sql: str) -> str:
    """Return the operation and the tables of a statement, such as `SELECT payments_apikey payments_payment`."""
    operation = sql.split(maxsplit=1)[0].upper()
    subqueries = set(SUBQUERY_NAME.findall(sql))
    tables = dict.fromkeys(name for name in TABLE_NAME.findall(sql) if name not in subqueries)
    return " ".join(["SELECT" if operation == "WITH" else operation, *tables])


def record_error(span: Span, kind: str) -> None:
    """Record the kind of an error. Its message may contain personal data."""
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", kind)
