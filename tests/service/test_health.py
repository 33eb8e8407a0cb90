"""Health checks: whether the process runs, and whether it can serve requests."""

from typing import Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.test.utils import CaptureQueriesContext


def status_and_body(response: Any) -> tuple[int, Any]:
    return response.status_code, response.json()


def test_liveness_check_needs_no_database(client: Client) -> None:
    """This test may not use the database."""
    assert status_and_body(client.get("/healthz")) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_service_is_ready_if_the_database_has_all_migrations(client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        response = client.get("/readyz")

    assert status_and_body(response) == (200, {"status": "ok"})
    assert response["Cache-Control"] == "no-store"
    assert len(queries) <= 2


@pytest.mark.django_db
def test_service_is_not_ready_without_a_migration(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    [(_, latest)] = MigrationLoader(connection).graph.leaf_nodes("payments")
    MigrationRecorder(connection).record_unapplied("payments", latest)

    response = client.get("/readyz")

    assert status_and_body(response) == (503, {"status": f"Not migrated: payments.{latest}."})
    assert f"is not ready: Not migrated: payments.{latest}" in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probe_accepts_any_host_and_only_reads(client: Client, path: str) -> None:
    assert client.get(path, headers={"Host": "10.0.0.7"}).status_code == 200
    assert client.head(path).status_code == 200
    assert client.post(path).status_code == 405
