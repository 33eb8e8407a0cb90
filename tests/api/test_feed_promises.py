"""The promise of the change feed (contract, section 8: P5) while imports commit late, fail, and others write."""

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from rest_framework.request import Request

from payments.api.pagination import ChangesPagination
from payments.api.views import PaymentChanges
from payments.listing.content import Content
from payments.listing.feed import ChangesPage
from payments.listing.tokens import FeedPosition
from payments.models import Payment
from tests.api.feed_machine import Feeds
from tests.support.api import Api
from tests.support.connecting import connected_to
from tests.support.factories import ApiKeyFactory, OrganizationFactory
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
    monkeypatch.setattr("payments.ingest.change_log.CHANGE_PAYMENTS_MAX", 2)
    monkeypatch.setattr("payments.listing.feed.PAGE_CHANGES_MAX", 3)
    with fresh_database(tmp_path) as url, connected_to(url), held_imports(url) as imports:
        yield imports


@pytest.fixture
def feed(imports: HeldImports, client: Client) -> Api:
    return Api(client, ApiKeyFactory.create(organization=OrganizationFactory.create(id=1), mode="live"))


@pytest.mark.also("citus", long=True)
@pytest.mark.hypothesis
def test_clients_of_the_feed_miss_nothing_whatever_happens(feed: Api, imports: HeldImports) -> None:
    machine: Any = partial(Feeds, feed, imports)
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=40, max_examples=examples(6, long=2_000)))


# A wrong implementation: payments are numbered when they are written, as a sequence does.


def read_before_a_late_commit(feed: Api, imports: HeldImports) -> None:
    """Read the feed while an import has written payments before others, but commits after them."""
    feeds = Feeds(feed, imports)
    try:
        feeds.store_first_payments()
        feeds.hold_import(["pt_D", "pt_E"])
        feeds.import_payments(["pt_F"])
        feeds.read_and_compare(0)
        feeds.end_import(0, is_complete=True)
        feeds.read_and_compare(0)
    finally:
        feeds.fail_imports()


class PaginationByChangeId(ChangesPagination):
    """Continues after the highest value that was read: correct if values became visible in their order."""

    def paginate_content(self, content: Content, request: Request) -> list[Any]:
        limit, _, position = self.parameters
        access = request.auth.access  # type: ignore[union-attr]
        number = position.number if position else 1
        payments = Payment.objects.visible_to(access).filter(change_id__gt=number).order_by("change_id", "id")
        read = list(payments[: limit + 1])
        last = read[:limit][-1].change_id if read else number
        self.page = ChangesPage(
            read[:limit], FeedPosition(access.organization_id, access.mode, number=last), len(read) > limit
        )
        return self.page.rows


def test_order_of_writing_breaks_the_promise(feed: Api, imports: HeldImports, monkeypatch: pytest.MonkeyPatch) -> None:
    read_before_a_late_commit(feed, imports)
    next_value = partial(next, count(2))
    monkeypatch.setattr("payments.models.recording.new_change_id", next_value)
    monkeypatch.setattr("payments.ingest.change_log.new_change_id", next_value)
    monkeypatch.setattr(PaymentChanges, "pagination_class", PaginationByChangeId)

    with pytest.raises(AssertionError, match=r"^missed: "):
        read_before_a_late_commit(feed, imports)


# The same promise of the deployed service.


@pytest.mark.processes
@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_clients_over_http_miss_nothing_while_six_write(service: Service, db: None, seed: int) -> None:
    follow_while_six_write(service, seconds=times(4, long=600), slow_import=times(2, long=20), seed=seed)
