"""Each request as a span, and each of its statements as one within it, sent by OTLP over HTTP.

Where to, and how many of them, is for OpenTelemetry's own variables to say: OTEL_EXPORTER_OTLP_ENDPOINT,
OTEL_TRACES_SAMPLER and others. A span holds what the log may hold, and no values of statements.
"""

import re
import threading
from collections.abc import Callable
from functools import lru_cache, partial
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

from payments.runtime import request_ids
from payments.runtime.hooks import Observer, Result, observers
from payments.service.handler import around
from payments.service.logs import redacted
from payments.service.telemetry import version
from payments.service.telemetry.routes import OTHER, method, route

# A worker that ends sends what it has; it is killed after five seconds.
LAST_SENT_SECONDS_MAX = 2

PATH_CHARACTERS_MAX = 500
FIRST_ERROR_STATUS = 500

# As OpenTelemetry's conventions call a method that nobody knows.
UNKNOWN_METHOD = "_OTHER"

NAMED_TABLE = re.compile(r'\b(?:FROM|INTO|UPDATE|TABLE)\s+"?(\w+)', re.IGNORECASE)

parents = TraceContextTextMapPropagator()


def begin() -> None:
    """Trace the requests of this process, and send them from a thread of its own."""
    # What the environment says of the service goes before what we do.
    told = {"service.name": "payments", "service.version": version(), **OTELResourceDetector().detect().attributes}
    provider = TracerProvider(resource=Resource.create(told), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    Finalize(None, send_the_last, args=[provider], exitpriority=0)  # a worker is one of multiprocessing's: no atexit
    tracer = provider.get_tracer("payments", version())
    around.append(partial(request_traced, tracer=tracer))
    observers.append(StatementSpans(tracer))


def send_the_last(provider: TracerProvider) -> None:
    """Send what is left, unless nobody takes it."""
    sending = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
    sending.start()
    sending.join(LAST_SENT_SECONDS_MAX)


def request_traced(
    request: HttpRequest, *, by: Callable[[HttpRequest], HttpResponseBase], tracer: Tracer
) -> HttpResponseBase:
    """Return the answer; its span is a part of the trace that the request names (W3C Trace Context)."""
    known, name = method(request.method), route(request.path_info)
    attributes = {
        "http.request.method": UNKNOWN_METHOD if known == OTHER else known,
        "url.path": redacted(request.path_info[:PATH_CHARACTERS_MAX]),
        "url.scheme": request.scheme or "http",
        "payments.request_id": redacted(request_ids.current.get()),
    }
    if name != OTHER:
        attributes["http.route"] = name
    with tracer.start_as_current_span(
        f"{'HTTP' if known == OTHER else known} {'' if name == OTHER else name}".strip(),
        context=parents.extract({"traceparent": request.META.get("HTTP_TRACEPARENT", "")}),
        kind=SpanKind.SERVER,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        response = by(request)
        span.set_attribute("http.response.status_code", response.status_code)
        if response.status_code >= FIRST_ERROR_STATUS:
            fail(span, str(response.status_code))
        return response


class StatementSpans(Observer):
    """Makes a span of each statement."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def statement(self, sql: str, run: Callable[[], Result]) -> Result:
        summary = summed_up(sql)
        with self.tracer.start_as_current_span(
            summary,
            kind=SpanKind.CLIENT,
            attributes={"db.system.name": connection.vendor, "db.query.text": sql, "db.query.summary": summary},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                return run()
            except Error as error:
                fail(span, type(error).__qualname__)
                raise


@lru_cache
def summed_up(sql: str) -> str:
    """Return what a statement does, and to which table: `SELECT table`."""
    table = NAMED_TABLE.search(sql)
    return " ".join([sql.split(maxsplit=1)[0].upper(), *([table[1]] if table else [])])


def fail(span: Span, kind: str) -> None:
    """Say of which kind an error was. Its words may hold anything."""
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", kind)
