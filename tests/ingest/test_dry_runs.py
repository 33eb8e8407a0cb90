"""A dry run writes nothing and blocks no writer. It reports the figures of an import."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from pytest_django import Settings

from payments.ingest import ImportResult, Source, import_payments
from payments.ingest.formats.sources import CHUNK_BYTES
from payments.ingest.staging import ID_KEY, fetch_primary_key
from payments.models import Organization, Payment
from payments.runtime.hooks import Hook, Progress
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory
from tests.support.hooks import registered
from tests.support.lines import MISSING, line, record, source, store
from tests.support.migrated import fresh_database
from tests.support.scale import SEED, report, times
from tests.support.sql import execute, fetch_value
from tests.support.threads import in_thread

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

FILES = times(12, long=300)


def load(*contents: bytes, **options: Any) -> tuple[ImportResult, list[str]]:
    refused: list[str] = []
    result = import_payments(
        [source(content, f"f{number}") for number, content in enumerate(contents, start=1)],
        on_refused=lambda location, error: refused.append(f"{location}: {error}"),
        **options,
    )
    return result, refused


def lines(*texts: bytes) -> bytes:
    return b"".join(text + b"\n" for text in texts)


def database() -> dict[str, list[Any]]:
    """Return the content of all tables."""
    return {
        model.__name__: sorted(map(repr, model._default_manager.values_list()))  # noqa: SLF001
        for model in apps.get_models()
    }


CHANGES: list[Callable[[random.Random], dict[str, Any]]] = [
    lambda rng: {"description": rng.choice(["", "Tea", "Café"])},
    lambda rng: {"method": rng.choice([MISSING, "ideal"])},
    lambda rng: {"amount": {"value": rng.choice(["1.00", "2.00"]), "currency": rng.choice(["EUR", "USD"])}},
    lambda rng: {"amountNet": rng.choice([MISSING, {"value": "1.00", "currency": "EUR"}])},
    lambda rng: {"metadata": rng.choice([{}, {"order": "7"}])},
    lambda rng: {"details": rng.choice([MISSING, {}, {"a": "b"}, {"a": 1.0}])},
    lambda rng: {"expiresAt": rng.choice([MISSING, "2018-03-20T13:43:37.001"])},
    lambda rng: {"customerId": rng.choice([MISSING, "ct_8"])},
    lambda rng: {"status": rng.choice(["open", "prod"])},
    lambda rng: {"organizationId": rng.choice(["1", "2", "404"])},
    lambda rng: {"mode": "test"},
    lambda rng: {"createdAt": "2019-01-01T00:00:00.000"},
]
WEIGHTS = [9] * 8 + [2] + [1] * 3


def random_records(rng: random.Random, *, first: int) -> Iterator[dict[str, Any]]:
    for _ in range(rng.randrange(60)):
        changes: dict[str, Any] = {}
        for change in rng.choices(CHANGES, WEIGHTS, k=rng.randrange(4)):
            changes |= change(rng)
        yield record(id=f"pt_{first + rng.randrange(20)}", **changes)


def cells(members: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a record, with their titles in CSV."""
    return {
        title: value
        for name, member in members.items()
        for title, value in (
            {f"{name}.{part}": value for part, value in member.items()} if name.startswith("amount") else {name: member}
        ).items()
    }


class Expected:
    """The payments, and what an import should do to each."""

    def __init__(self) -> None:
        self.by_organization = fetch_primary_key() != ID_KEY
        self.stored: dict[Any, dict[str, Any]] = {}

    def load(self, records: list[dict[str, Any]], *, create_organizations: bool, keep_going: bool) -> ImportResult:
        result, stored = ImportResult(read=len(records)), dict(self.stored)
        for members in records:
            organization = members["organizationId"]
            key = (organization, members["id"]) if self.by_organization else members["id"]
            before = stored.get(key)
            is_unknown = organization == "404" and not create_organizations
            fixed = ("organizationId", "mode", "createdAt")
            if members["status"] == "prod" or is_unknown or (before and any(before[x] != members[x] for x in fixed)):
                result.refused += 1
                continue
            old, new = cells(before or {}), cells(members)
            changed = [title for title in old | new if old.get(title) != new.get(title)]
            result.created += before is None
            result.changed += bool(before and changed)
            result.unchanged += not changed
            result.columns.update(changed if before else ())
            stored[key] = members
        if result.refused and not keep_going:
            return ImportResult(read=result.read, refused=result.refused)
        self.stored = stored
        return result


def test_dry_run_counts_what_the_import_does_and_writes_nothing(organization: Organization, settings: Settings) -> None:
    rng = random.Random(SEED)  # noqa: S311  reproducible, not for security
    settings.PAYMENTS_IMPORT_BATCH_RECORDS = 7
    OrganizationFactory.create(id=2)
    expected = Expected()
    created = 0
    for number in range(FILES):
        records = list(random_records(rng, first=4 * number))
        content = lines(*map(line_of, records))
        options = {"keep_going": rng.random() < 0.8, "create_organizations": rng.random() < 0.3}
        if Organization.objects.filter(id=404).exists():
            options["create_organizations"] = True
        before = database()

        planned = load(content, dry_run=True, **options)

        assert database() == before
        assert load(content, **options) == planned
        result = expected.load(records, **options)
        if result.refused and not options["keep_going"]:
            assert 0 < planned[0].refused <= result.refused  # conflicts of unwritten records are not found
            result.refused = planned[0].refused
        assert planned[0] == result
        created += planned[0].created
    report(f"dry runs: {FILES}, {created} payments created, SEED={SEED}")
    assert created > FILES


def line_of(members: dict[str, Any]) -> bytes:
    return line(**dict.fromkeys(record(), MISSING) | members)


@pytest.mark.parametrize("keep_going", [False, True])
def test_dry_run_of_several_files_refuses_what_an_import_refuses(organization: Organization, keep_going: bool) -> None:
    load(line(id="pt_1"))
    missing_organization = line(id="pt_2", organizationId="404")
    contents = (lines(line(id="pt_1", mode="test"), missing_organization), b"<html>")

    planned = load(*contents, dry_run=True, keep_going=keep_going)

    assert planned == load(*contents, keep_going=keep_going)
    assert sorted(refusal[:4] for refusal in planned[1]) == ["f1:1", "f1:2", "f2:1"]


def test_later_record_of_a_payment_is_compared_with_the_earlier_one(organization: Organization) -> None:
    texts = (line(description="first"), line(description="second"), line(description="second"), line(method="ideal"))

    result, _ = load(lines(*texts), dry_run=True)

    columns = Counter(description=2, method=1)
    assert result == ImportResult(read=4, created=1, changed=2, unchanged=1, columns=columns)


def test_dry_run_is_no_import_for_metrics(organization: Organization) -> None:
    class Failing(Hook):
        def import_started(self) -> None:
            raise AssertionError

        def import_progressed(self, progress: Progress) -> None:
            raise AssertionError

        def import_finished(self, progress: Progress, *, outcome: str) -> None:
            raise AssertionError

    with registered(Failing()):
        assert load(line(), dry_run=True)[0].created == 1


class Interrupted(BytesIO):
    """A stream that calls a function at its end, long after its records are read."""

    def __init__(self, content: bytes, function: Callable[[], None]) -> None:
        super().__init__(content + b"\n" * CHUNK_BYTES)
        self.function = function

    def readinto(self, buffer: Any) -> int:
        if not (count := super().readinto(buffer)):
            self.function()
        return count


@pytest.mark.only("sqlite", "postgresql")
def test_other_connections_write_the_same_payments_during_a_dry_run(tmp_path: Path, settings: Settings) -> None:
    settings.PAYMENTS_IMPORT_BATCH_RECORDS = 2
    content = lines(*(line(id=f"pt_{number}", description="planned") for number in range(4)))

    def write() -> None:
        with connected_to(url):
            if "postgresql" in url:
                execute("SET lock_timeout = '2s'")
            store([line(id=f"pt_{number}", description="other") for number in range(6)])

    def write_in_thread() -> None:
        writing = in_thread(write)
        writing.start()
        writing.join()

    with fresh_database(tmp_path) as url, connected_to(url):
        store([line(id="pt_0")])
        stream = Interrupted(content, write_in_thread)
        result = import_payments([Source("f", BufferedReader(stream))], on_refused=lambda *_: None, dry_run=True)

        assert (result.created, result.changed) == (3, 1)
        assert set(Payment.objects.values_list("description", flat=True)) == {"other"}


@pytest.mark.only("postgresql")
def test_dry_run_leaves_no_dead_rows_and_no_statistics(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url, connected_to(url):
        store([line(id="pt_1")])
        execute("ANALYZE payments_payment")
        state = "SELECT (pg_relation_size(oid), reltuples)::text FROM pg_class WHERE relname = 'payments_payment'"
        before = fetch_value(state)

        load(lines(*(line(id=f"pt_{number}") for number in range(200))), dry_run=True)

        assert fetch_value(state) == before


def test_dry_run_does_not_see_an_earlier_one(organization: Organization) -> None:
    """SQLite keeps temporary tables until the connection ends."""
    for _ in range(2):
        assert load(line(), dry_run=True)[0].created == 1
