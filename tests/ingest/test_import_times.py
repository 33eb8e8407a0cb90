"""Each organization and mode has the times of its last successful imports, and when its next import is late."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import cycle, pairwise
from random import Random
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from payments.ingest import import_payments
from payments.ingest.recording import Origin
from payments.models import Access, ImportRun, ImportTimes, ImportWay
from payments.models.import_times import DAYS_MIN, RECENT, SCHEDULE_DAYS
from payments.runtime.hooks import Hook, Progress
from tests.support.factories import NOON, OrganizationFactory
from tests.support.hooks import registered
from tests.support.lines import MISSING, line, source
from tests.support.threads import in_thread, wait_until_blocked

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

LIVE, TEST, OTHER = Access(1, "live"), Access(1, "test"), Access(2, "live")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
COMMAND, API = ImportWay.COMMAND, ImportWay.API
TEXTS = (line(id="pt_1"), line(id="pt_2", mode="test"), line(id="pt_3", organizationId="2"))
INVALID = line(id="pt_4", description=MISSING)


@pytest.fixture(autouse=True)
def organizations(db: None) -> None:
    for number in (1, 2):
        OrganizationFactory.create(id=number)


def record(time: datetime, *accesses: Access, way: ImportWay = COMMAND) -> None:
    with transaction.atomic():
        ImportTimes.objects.record(accesses or [LIVE], way=way, started_at=time)


def load(*texts: bytes, **options: Any) -> None:
    import_payments([source(b"\n".join(texts))], on_refused=lambda location, error: None, **options)


def by_way() -> dict[tuple[int, str], dict[ImportWay, datetime]]:
    return {times.pk: times.by_way for times in ImportTimes.objects.all()}


def last_start() -> datetime:
    return ImportRun.objects.latest("id").started_at


def test_import_sets_the_times_of_its_organizations_and_modes() -> None:
    load(TEXTS[0])
    first = last_start()
    load(*TEXTS[1:])

    assert by_way() == {LIVE: {COMMAND: first}, TEST: {COMMAND: last_start()}, OTHER: {COMMAND: last_start()}}


def test_import_that_changes_nothing_sets_the_time_of_its_way() -> None:
    load(TEXTS[0])
    first = last_start()
    load(TEXTS[0], origin=Origin(API, "Till", LIVE))

    assert by_way() == {LIVE: {COMMAND: first, API: last_start()}}


def test_partial_import_sets_the_times_of_existing_organizations() -> None:
    load(TEXTS[0], INVALID, line(id="pt_9", organizationId="404"), keep_going=True)

    assert by_way() == {LIVE: {COMMAND: last_start()}}


class Failing(Hook):
    """Raises an error after the first batch of an import."""

    def import_progressed(self, progress: Progress) -> None:
        raise DatabaseError


def fail() -> None:
    with registered(Failing()), pytest.raises(DatabaseError):
        load(*TEXTS)


@pytest.mark.parametrize(
    "attempt",
    [fail, partial(load, *TEXTS, INVALID), partial(load, *TEXTS, dry_run=True)],
    ids=["error", "refused record", "dry run"],
)
def test_import_that_writes_nothing_sets_no_time(attempt: Any) -> None:
    load(TEXTS[0])
    before = by_way()

    attempt()

    assert by_way() == before


def test_ways_have_their_own_times_and_share_the_schedule() -> None:
    for days, way in enumerate((COMMAND, API, COMMAND, API)):
        record(NOON + days * DAY, way=way)

    assert by_way() == {LIVE: {COMMAND: NOON + 2 * DAY, API: NOON + 3 * DAY}}
    assert ImportTimes.objects.of(LIVE).late_at == NOON + 5 * DAY


def test_import_that_ends_after_a_later_one_changes_no_schedule() -> None:
    for days in (0, 1, 2, 5):
        record(NOON + days * DAY)
    record(NOON + 3 * DAY)
    record(NOON + 4 * DAY, way=API)

    assert by_way() == {LIVE: {COMMAND: NOON + 5 * DAY, API: NOON + 4 * DAY}}
    assert ImportTimes.objects.of(LIVE).late_at == NOON + 11 * DAY


@pytest.mark.parametrize(
    ("hours", "late"),
    [
        ([0], None),
        ([0, 1, 2, 3, 4], None),
        ([0, 24, 48], None),
        ([0, 24, 48, 48], None),
        ([0, 24, 48, 72], 120),
        ([0, 1, 24, 25, 48], 94),
        ([0, 24, 96, 120], 264),
        ([0, 9 * 24, 10 * 24, 11 * 24], 29 * 24),
        ([0, 14 * 24 + 1, 15 * 24, 16 * 24], None),
    ],
)
def test_few_imports_are_no_schedule(hours: list[int], late: int | None) -> None:
    row = ImportTimes()
    for number in hours:
        row.add(COMMAND, NOON + number * HOUR)

    assert row.late_at == (None if late is None else NOON + late * HOUR)


def expected_late_at(times: Sequence[datetime]) -> datetime | None:
    """Return when the import after these is late, by the definition."""
    since = times[-1].date() - timedelta(days=SCHEDULE_DAYS)
    pairs = [pair for pair in pairwise(times) if pair[1].date() > since]
    ended = [later for earlier, later in pairs if later - earlier <= timedelta(days=SCHEDULE_DAYS)]
    gaps = [later - earlier for earlier, later in pairs if later in ended]
    return times[-1] + 2 * max(gaps) if len({later.date() for later in ended}) >= DAYS_MIN else None


def random_times(seed: int) -> Iterator[datetime]:
    """Yield the times of imports in about 40 days; the time between two of them is seconds, hours or many days."""
    chance = Random(seed)  # noqa: S311
    time = NOON
    while time < NOON + timedelta(days=40):
        yield time
        time += timedelta(seconds=chance.expovariate(1) * chance.choice((60, 3600, 86_400, chance.choice((9, 10**6)))))


@pytest.mark.parametrize("seed", range(20))
def test_import_is_late_after_twice_the_longest_gap_of_14_days(seed: int) -> None:
    times, row = list(random_times(seed)), ImportTimes()

    for number, (time, way) in enumerate(zip(times, cycle(ImportWay), strict=False), start=1):
        row.add(way, time)

        assert row.late_at == expected_late_at(times[:number])
        assert len(row.days) <= SCHEDULE_DAYS


def test_schedule_is_the_same_after_it_was_stored() -> None:
    times = list(random_times(7))[:30]

    for number, time in enumerate(times, start=1):
        record(time)

        assert ImportTimes.objects.of(LIVE).late_at == expected_late_at(times[:number])


@pytest.mark.parametrize(("age", "is_late"), [(2 * DAY - HOUR / 60, False), (2 * DAY + HOUR / 60, True)])
def test_times_tell_whether_the_next_import_is_late(age: timedelta, is_late: bool) -> None:
    for days in (3, 2, 1, 0):
        record(timezone.now() - age - days * DAY, LIVE, TEST)

    assert ImportTimes.objects.of(LIVE).is_late == is_late
    assert ImportTimes.objects.freshness()["late"] == 2 * is_late


def test_freshness_has_the_oldest_and_newest_time_of_each_way() -> None:
    now = timezone.now()
    for access, days in ((LIVE, 2), (TEST, 40), (OTHER, 1)):
        record(now - timedelta(days=days), access)
    record(now - timedelta(days=3), TEST, way=API)

    assert ImportTimes.objects.freshness() == {
        "oldest_command": now - timedelta(days=2),
        "newest_command": now - timedelta(days=1),
        "oldest_api": now - timedelta(days=3),
        "newest_api": now - timedelta(days=3),
        "late": 0,
    }


@pytest.mark.parametrize(("age", "late"), [(RECENT - HOUR, 1), (RECENT + HOUR, 0)])
def test_organization_that_stopped_importing_counts_for_30_days(age: timedelta, late: int) -> None:
    for days in (3, 2, 1, 0):
        record(timezone.now() - age - days * DAY, OTHER)

    assert ImportTimes.objects.freshness()["late"] == late
    assert ImportTimes.objects.of(OTHER).is_late


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_first_imports_at_the_same_time_share_their_rows() -> None:
    second = in_thread(partial(record, NOON + 3 * HOUR, OTHER, LIVE))

    with transaction.atomic():
        record(NOON, LIVE, OTHER)
        second.start()
        wait_until_blocked(second)
    second.join()

    assert [ImportTimes.objects.of(access).longest_gap for access in (LIVE, OTHER)] == [3 * HOUR] * 2


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_import_reads_the_times_after_an_import_that_ends_before() -> None:
    record(NOON - HOUR, LIVE, OTHER)
    second = in_thread(partial(record, NOON + 3 * HOUR, OTHER, LIVE))

    with transaction.atomic():
        list(ImportTimes.objects.select_for_update())
        second.start()
        wait_until_blocked(second)
        record(NOON, LIVE, OTHER)
    second.join()

    assert [ImportTimes.objects.of(access).longest_gap for access in (LIVE, OTHER)] == [3 * HOUR] * 2
