"""Metrics of a service, read from `/metrics` by Prometheus' own parser."""

import http.client
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.support.service import Service

READ = "payments_import_records_read_total"
LIST = "/v2/payments"


def fetch(service: Service, path: str, *, method: str = "GET", key: str | None = None) -> tuple[int, str]:
    """Return status and body of a response. Each request has a new connection, so that any worker may get it."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    try:
        connection.request(method, path, headers={"Authorization": f"Bearer {key}"} if key else {})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def families(service: Service) -> list[Metric]:
    status, text = fetch(service, "/metrics")
    assert status == 200, text
    return list(text_string_to_metric_families(text))


def samples(service: Service, name: str, **labels: str) -> Iterator[float]:
    """Yield the values of a metric whose labels include these."""
    for family in families(service):
        for sample in family.samples:
            if sample.name == name and sample.labels.items() >= labels.items():
                yield sample.value


def total(service: Service, name: str, **labels: str) -> float:
    return sum(samples(service, name, **labels))


def requests(service: Service, **labels: str) -> float:
    return total(service, "payments_requests_total", **labels)
