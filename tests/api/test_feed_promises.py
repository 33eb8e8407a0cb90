"""The promise of the change feed (contract, section 8: P5) while imports commit late, fail, and others write."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from payments import changes
from payments.changes import ChangesPage
from payments.listing import Listing
from payments.models import AccessState, Payment, recording
from payments.models.recording import changes_of_move
from payments.rows import as_rows
from payments.tokens import Position
from tests.support.api import Api
from tests.support.connecting import connected_to
from tests.support.factories import ApiKeyFactory, OrganizationFactory
from tests.support.feed_machine import Feeds
from tests.support.following import follow_while_six_write
from tests.support.held_imports import HeldImports, held_imports
from tests.support.migrated import fresh_database
from tests.support.scale import SEED, examples, times
from tests.support.service import Service

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.xdist_group("service")]


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldImports]:
    """Connect to a database of its own, in which small changes and pages reach every limit."""
    monkeypatch.setattr("payments.models.recording.CHANGE_PAYMENTS_MAX", 2)
    monkeypatch.setattr("payments.ingest.changes.CHANGE_PAYMENTS_MAX", 2)
    monkeypatch.setattr(changes, "PAGE_CHANGES_MAX", 3)
    changes.changes_statement.cache_clear()  # an earlier test may have had another implementation
    with fresh_database(tmp_path) as url, connected_to(url), held_imports(url, monkeypatch) as imports:
        yield imports


@pytest.fixture
def feed(imports: HeldImports, client: Client) -> Api:
    return Api(client, ApiKeyFactory.create(organization=OrganizationFactory.create(id=1), mode="live"))


def run(api: Api, imports: HeldImports, *, moves_payments: bool = True, **options: Any) -> None:
    machine: Any = partial(Feeds, api, imports, moves_payments=moves_payments)
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=40, **options))


@pytest.mark.also("citus", long=True)
@pytest.mark.hypothesis
def test_clients_of_the_feed_miss_nothing_whatever_happens(feed: Api, imports: HeldImports) -> None:
    run(feed, imports, max_examples=examples(12, long=2_000))


# Wrong implementations. The state machine must catch each of them.


def page_by_change_id(listing: Listing, position: Position, *, limit: int) -> ChangesPage:
    """Continue after the highest value that was read: correct if values became visible in their order."""
    payments = Payment.objects.visible_to(listing.access).filter(change_id__gt=position.number)
    rows = list(as_rows(payments.order_by("change_id", "id"), F("change_id"))[: limit + 1])
    last = rows[:limit][-1][-1] if rows else position.number
    return ChangesPage(rows[:limit], Position(*listing.access, number=last), len(rows) > limit, revision=None)


def use_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Number payments when they are written, as a sequence does."""
    use_values(monkeypatch, partial(next, count(2)))


def use_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Note the time when a payment is written, as `updatedAt` does: here, the number of steps of the machine."""
    ticks = count(1)
    use_values(monkeypatch, lambda: next(ticks) // 3 + 2)


def use_values(monkeypatch: pytest.MonkeyPatch, new_value: Callable[[], int]) -> None:
    monkeypatch.setattr("payments.models.recording.new_change_id", new_value)
    monkeypatch.setattr("payments.ingest.changes.new_change_id", new_value)
    monkeypatch.setattr("payments.api.changes_pagination.fetch_changes", page_by_change_id)


def trust_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continue at the number of a change, whether or not the database has lost changes."""
    monkeypatch.setattr(changes, "has_known", lambda rows: True)
    monkeypatch.setattr(changes, "known_row", lambda **_: changes.newest_row())


def ignore_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continue in the same epoch after SQL has changed payments."""
    monkeypatch.setattr(AccessState, "current_epoch", property(lambda state: state.epoch))
    monkeypatch.setattr(changes, "current_epoch", lambda: F("epoch"))


def stay_in_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continue in the same epoch after a payment has moved to the other mode."""
    monkeypatch.setattr(recording, "changes_of_move", lambda written, stored: (changes_of_move(written, stored)[0], ()))


def check_wrong(feed: Api, imports: HeldImports, error: str, *, moves_payments: bool = False) -> None:
    with pytest.raises(AssertionError, match=f"^({error}): "):
        run(
            feed,
            imports,
            moves_payments=moves_payments,
            max_examples=200,
            phases=[Phase.generate],
            report_multiple_bugs=False,
        )


@pytest.mark.parametrize("use_values", [use_sequence, use_clock])
def test_order_of_writing_breaks_the_promise(
    feed: Api,
    imports: HeldImports,
    monkeypatch: pytest.MonkeyPatch,
    use_values: Callable[[pytest.MonkeyPatch], None],
) -> None:
    use_values(monkeypatch)

    check_wrong(feed, imports, "missed|stale")


@pytest.mark.once
@pytest.mark.parametrize("skip_check", [trust_positions, ignore_sql, stay_in_epoch])
def test_missing_check_breaks_the_promise(
    feed: Api,
    imports: HeldImports,
    monkeypatch: pytest.MonkeyPatch,
    skip_check: Callable[[pytest.MonkeyPatch], None],
) -> None:
    skip_check(monkeypatch)

    check_wrong(feed, imports, "missed|stale|foreign", moves_payments=skip_check is stay_in_epoch)


# The same promise of the deployed service.


@pytest.mark.processes
@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_clients_over_http_miss_nothing_while_six_write(service: Service, db: None, seed: int) -> None:
    follow_while_six_write(service, seconds=times(4, long=600), slow_import=times(2, long=20), seed=seed)
