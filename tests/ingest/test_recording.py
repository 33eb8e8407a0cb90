"""Every import leaves a row for staff: how it ended, its counts, its first errors and its organizations."""

import getpass
import os
import signal
import subprocess
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone

from payments.ingest import ImportResult, Source, import_payments
from payments.ingest.recording import LINES_MAX, RUNS_AGE_MAX, Origin, begin, user_of_machine
from payments.models import ImportPart, ImportRun, Payment
from payments.runtime.hooks import Hook, Progress
from tests.support.commands import manage
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory
from tests.support.hooks import registered
from tests.support.lines import MISSING, line, source
from tests.support.migrated import fresh_database
from tests.support.service import Service
from tests.support.sql import execute
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

TEXTS = [line(id="pt_1"), line(id="pt_2"), line(id="pt_3", mode="test"), line(id="pt_4", organizationId="2")]


@pytest.fixture(autouse=True)
def organizations(db: None) -> None:
    for number in (1, 2):
        OrganizationFactory.create(id=number)


INVALID = line(id="pt_5", description=MISSING)
REASON = "description: is missing"


def load(*texts: bytes, name: str = "payments.jsonl", **options: Any) -> ImportResult:
    return import_payments([source(b"\n".join(texts), name)], on_refused=lambda location, error: None, **options)


def run_values(*names: str) -> tuple[Any, ...]:
    """Return values of the newest run."""
    return ImportRun.objects.order_by("id").values_list(*names).last() or ()


def parts() -> dict[tuple[int, str], int]:
    """Return the written payments of the newest run by organization and mode."""
    newest = ImportRun.objects.order_by("id").last()
    rows = ImportPart.objects.filter(run=newest).values_list("organization_id", "mode", "written")
    return {(organization_id, mode): written for organization_id, mode, written in rows}


def test_successful_import_is_recorded_with_its_counts_and_parts() -> None:
    load(*TEXTS[:2])
    before = timezone.now()

    load(
        line(id="pt_1", description="changed"),
        *TEXTS[1:],
        name="/srv/night/payments.jsonl",
        origin=Origin(actor="Shop key"),
    )

    assert run_values("outcome", "read", "refused", "created", "changed", "unchanged") == ("succeeded", 4, 0, 2, 1, 1)
    assert run_values("source", "actor", "errors") == ("payments.jsonl", "Shop key", [])
    assert parts() == {(1, "live"): 1, (1, "test"): 1, (2, "live"): 1}
    started_at, ended_at = run_values("started_at", "ended_at")
    assert before <= started_at <= ended_at <= timezone.now()


def test_import_that_changes_nothing_has_its_parts() -> None:
    load(TEXTS[0])
    load(TEXTS[0])

    assert run_values("outcome", "unchanged") == ("succeeded", 1)
    assert parts() == {(1, "live"): 0}


@pytest.mark.parametrize(
    ("keep_going", "counts", "written"),
    [(False, ("failed", 4, 3, 0, 0, 0), 0), (True, ("partial", 4, 3, 1, 0, 0), 1)],
)
def test_refused_records_are_recorded_with_their_organizations(
    keep_going: bool, counts: tuple[Any, ...], written: int
) -> None:
    load(line(id="pt_9"))

    load(
        line(id="pt_1"),
        b'{"id": "pt_5"}',
        line(id="pt_6", organizationId="404"),
        line(id="pt_9", mode="test"),
        name="dir/a.jsonl",
        keep_going=keep_going,
    )

    assert run_values("outcome", "read", "refused", "created", "changed", "unchanged") == counts
    assert parts() == {(1, "live"): written, (404, "live"): 0, (1, "test"): 0}
    [errors] = run_values("errors")
    assert errors[0].startswith("a.jsonl:2: ")
    assert "a.jsonl:3: organizationId: this organization does not exist; --create-organizations creates it" in errors


def test_first_lines_of_the_errors_are_recorded() -> None:
    load(*[INVALID] * (LINES_MAX + 1))

    [errors] = run_values("errors")
    assert errors == [f"payments.jsonl:{number}: {REASON}" for number in range(1, LINES_MAX + 1)]


def test_dry_run_is_not_recorded() -> None:
    load(*TEXTS, INVALID, dry_run=True)

    assert not ImportRun.objects.exists()


class Failing(Hook):
    """Raises an error after the first batch of an import."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def import_progressed(self, progress: Progress) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyboardInterrupt(), "Interrupted. Nothing was changed."),
        (
            DatabaseError("4242424242424242"),
            "The database failed, and nothing was changed: DatabaseError. Its output or the log has the details.",
        ),
        (
            MemoryError("4242424242424242"),
            "The import failed, and nothing was changed: MemoryError. Its output or the log has the details.",
        ),
    ],
)
def test_failure_is_recorded_after_the_rollback(error: BaseException, reason: str) -> None:
    with registered(Failing(error)), pytest.raises(type(error)):
        load(INVALID, *TEXTS, keep_going=True)

    assert run_values("outcome", "read", "refused", "created") == ("failed", 5, 1, 0)
    assert run_values("errors") == ([reason, f"payments.jsonl:1: {REASON}"],)
    assert parts() == {(1, "live"): 0, (1, "test"): 0, (2, "live"): 0}
    assert not Payment.objects.exists()


def test_import_tells_its_own_error_if_its_end_cannot_be_written() -> None:
    class Dropping(Hook):
        def import_progressed(self, progress: Progress) -> None:
            execute("DROP TABLE payments_importpart")
            raise MemoryError

    with registered(Dropping()), pytest.raises(MemoryError):
        load(TEXTS[0])


def test_runs_of_90_days_ago_are_deleted_when_an_import_begins() -> None:
    load(TEXTS[0])
    load(TEXTS[1])
    old, recent = ImportRun.objects.order_by("id")
    for run, age in ((old, RUNS_AGE_MAX), (recent, RUNS_AGE_MAX - timedelta(minutes=1))):
        ImportRun.objects.filter(id=run.pk).update(started_at=timezone.now() - age)

    load(TEXTS[2])

    assert list(ImportRun.objects.order_by("id").values_list("id", flat=True))[:-1] == [recent.pk]
    assert not ImportPart.objects.filter(run_id=old.pk).exists()


def test_long_names_are_shortened() -> None:
    sources: Iterable[Source] = [source(b"", f"{number}{'x' * 100}") for number in range(3)]

    begin(sources, Origin(actor="y" * 151))

    source_names, actor = run_values("source", "actor")
    assert (len(source_names), source_names[-1]) == (255, "…")
    assert (len(actor), actor[-1]) == (150, "…")


def test_actor_is_the_user_at_the_machine() -> None:
    load(TEXTS[0])

    assert run_values("actor") == (user_of_machine(),)
    assert user_of_machine().startswith(f"{getpass.getuser()}@")


def test_user_of_a_container_may_have_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 123_456)

    assert user_of_machine().startswith("123456@")


@pytest.mark.only("sqlite")
@pytest.mark.django_db(transaction=True)
def test_row_of_an_import_keeps_no_lock() -> None:
    """On SQLite, a lock would be visible as an open transaction."""
    begin([source(b"")], Origin())

    assert not connection.in_atomic_block
    assert not connection.connection.in_transaction


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterable[Service]:
    with fresh_database(tmp_path_factory.mktemp("recording")) as url:
        yield Service(url)


@pytest.mark.processes
@pytest.mark.only("sqlite", "postgresql")
@pytest.mark.parametrize(
    ("number", "outcome", "errors"),
    [
        (signal.SIGKILL, "running", []),
        (signal.SIGINT, "failed", ["Interrupted. Nothing was changed."]),
    ],
    ids=["killed", "interrupted"],
)
def test_process_that_is_ended_leaves_its_row(
    service: Service, number: signal.Signals, outcome: str, errors: list[str]
) -> None:
    with connected_to(service.database_url):
        runs = ImportRun.objects.count()
        process = service.popen("import_payments", "-", stdin=subprocess.PIPE)
        wait_until(lambda: ImportRun.objects.count() > runs)
        assert run_values("outcome", "source", "ended_at") == ("running", "stdin", None)

        process.send_signal(number)
        process.communicate()

        assert run_values("outcome", "errors") == (outcome, errors)


@pytest.mark.processes
@pytest.mark.only("sqlite", "postgresql")
def test_command_records_a_failed_import(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "night.jsonl"
    file.write_bytes(INVALID)

    done = manage("import_payments", f"{file}", url=service.database_url)

    assert done.returncode == 1
    with connected_to(service.database_url):
        assert run_values("outcome", "source", "errors") == (
            "failed",
            "night.jsonl",
            [f"night.jsonl:1: {REASON}"],
        )
