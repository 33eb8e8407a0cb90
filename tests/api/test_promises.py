"""The promises of a walk (contract, section 1: P1 to P4) while payments arrive, change and are imported again."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import (
    run_state_machine_as_test,
)

from payments.listing import Listing
from payments.models import Payment, PaymentQuerySet
from payments.ordering import NEWEST_FIRST
from payments.page import Page
from payments.rows import COLUMN_INDEX, ID, Row, as_rows
from tests.support.api import Api
from tests.support.scale import SEED, examples, times
from tests.support.service import Service
from tests.support.walk_machine import Walks
from tests.support.walks import walk_while_two_write

pytestmark = [pytest.mark.also("citus", long=True), pytest.mark.xdist_group("service")]


def run(api: Api, *, has_filters: bool, **options: Any) -> None:
    # hypothesis declares a class as the parameter, but accepts any callable.
    machine: Any = partial(Walks, api, has_filters=has_filters)
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=40, **options))


@pytest.mark.hypothesis
def test_walks_keep_their_promises_whatever_happens(api: Api) -> None:
    run(api, has_filters=True, max_examples=examples(200, long=6_000))


# Wrong implementations of `fetch_page`. The state machine must catch each of them.


def page_by_offset(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Count positions: correct while no payment arrives."""
    rows = newest_first(visible(listing))
    first = int(start[len(OFFSET) :]) if start and start.startswith(OFFSET) else index(rows, start)
    page = cut(rows, first, limit)
    return page._replace(next_from=page.next_from and f"{OFFSET}{first + limit}")


def page_by_time(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Continue at a time: correct while no two payments share one."""
    rows = newest_first(visible(listing))
    created = [row[CREATED_AT] for row in rows]
    return cut(rows, created.index(created[index(rows, start)]) if rows else 0, limit)


def page_after_start(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Begin after the payment that the link names."""
    rows = newest_first(visible(listing))
    return cut(rows, 0 if start is None else index(rows, start) + 1, limit)


def page_by_status(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Order by a column that changes."""
    rows = list(as_rows(visible(listing).order_by("status", *NEWEST_FIRST)))
    return cut(rows, index(rows, start), limit)


def page_of_all_organizations(listing: Listing, *, start: str | None, limit: int) -> Page:
    rows = newest_first(Payment.objects.all())
    return cut(rows, index(rows, start), limit)


def page_of_both_modes(listing: Listing, *, start: str | None, limit: int) -> Page:
    rows = newest_first(Payment.objects.filter(organization_id=listing.access.organization_id))
    return cut(rows, index(rows, start), limit)


OFFSET = "pt_offset"
CREATED_AT = COLUMN_INDEX["created_at"]


def visible(listing: Listing) -> PaymentQuerySet:
    return Payment.objects.visible_to(listing.access)


def newest_first(payments: PaymentQuerySet) -> list[Row]:
    return list(as_rows(payments.order_by(*NEWEST_FIRST)))


def index(rows: list[Row], start: str | None) -> int:
    return 0 if start is None else [row[ID] for row in rows].index(start)


def cut(rows: list[Row], first: int, limit: int) -> Page:
    """Return the page that begins with `rows[first]`."""
    ids = [row[ID] for row in rows]
    return Page(
        rows[first : first + limit],
        previous_from=ids[max(0, first - limit)] if first > 0 else None,
        next_from=ids[first + limit] if first + limit < len(rows) else None,
    )


@pytest.mark.once
@pytest.mark.parametrize(
    ("wrong_page", "error"),
    [
        (page_by_offset, "skipped|repeated|astray"),
        (page_by_time, "skipped|repeated|astray"),
        (page_after_start, "skipped|repeated|astray"),
        (page_by_status, "skipped|repeated|astray"),
        (page_of_all_organizations, "foreign"),
        (page_of_both_modes, "foreign"),
    ],
)
def test_wrong_page_breaks_a_promise(
    api: Api, monkeypatch: pytest.MonkeyPatch, wrong_page: Callable[..., Page], error: str
) -> None:
    monkeypatch.setattr("payments.api.pagination.fetch_page", wrong_page)

    with pytest.raises(AssertionError, match=f"^({error}): "):
        run(api, has_filters=False, max_examples=100, phases=[Phase.generate], report_multiple_bugs=False)


# The same promises of the deployed service, while two writers commit.


@pytest.mark.processes
@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_walks_over_http_keep_their_promises_during_writes(service: Service, db: None, seed: int) -> None:
    walk_while_two_write(service.base_url, service.database_url, walks=times(400, long=100_000), seed=seed)
