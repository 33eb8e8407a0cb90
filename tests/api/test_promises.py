"""The promises of a walk (contract, section 1: P1 to P4) while payments arrive, change and are imported again."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from rest_framework.request import Request

from payments.api.pagination import KeysetPagination
from payments.api.views import PaymentList
from payments.listing.content import Content
from payments.listing.page import Page
from payments.models import Access, Payment, PaymentQuerySet, Status
from payments.models.ordering import NEWEST_FIRST
from tests.api.walk_machine import Walks
from tests.support.api import Api
from tests.support.scale import SEED, examples, times
from tests.support.service import Service
from tests.support.walks import walk_while_two_write

pytestmark = [pytest.mark.also("citus", long=True), pytest.mark.xdist_group("service")]


@pytest.mark.once("postgresql")
@pytest.mark.hypothesis
@pytest.mark.parametrize("normal", [25, pytest.param(100, marks=pytest.mark.extended)])
def test_walks_keep_their_promises_whatever_happens(api: Api, normal: int) -> None:
    # hypothesis declares a class as the parameter, but accepts any callable.
    machine: Any = partial(Walks, api)
    run_state_machine_as_test(
        machine, settings=settings(stateful_step_count=40, max_examples=examples(normal, long=60 * normal))
    )


# One wrong page for each promise. The same steps must catch each of them.


def walk_during_changes(api: Api) -> None:
    """Walk while a newer payment arrives, and a payment that arrives within the list changes after it was read."""
    walks = Walks(api)
    with walks.stack:
        walks.store_first_payments(["A", "B", "C", "D", "E", "F"])  # two at each of three times
        walks.store_foreign_payment("G", age=1, is_other_organization=True)
        [walk] = walks.begin_walk(None, 2, "desc", frozenset())
        walks.store_payment("H", age=-1)
        [late] = walks.store_payment("0", age=2)  # the last payment of its time, the second of three
        [walk] = walks.continue_walk(walk)
        [walk] = walks.continue_walk(walk)
        walks.change_payment(late, Status.SUCCEEDED, None)
        walks.teardown()


def page_by_offset(access: Access, *, start: str | None, limit: int) -> Page:
    """Count positions: correct while no payment arrives."""
    payments = newest_first(Payment.objects.visible_to(access))
    first = int(start[len(OFFSET) :]) if start and start.startswith(OFFSET) else index(payments, start)
    page = cut(payments, first, limit)
    return page._replace(next_from=page.next_from and f"{OFFSET}{first + limit}")


def page_after_start(access: Access, *, start: str | None, limit: int) -> Page:
    """Begin after the payment that the link names."""
    payments = newest_first(Payment.objects.visible_to(access))
    return cut(payments, 0 if start is None else index(payments, start) + 1, limit)


def page_by_status(access: Access, *, start: str | None, limit: int) -> Page:
    """Order by a column that changes."""
    payments = list(Payment.objects.visible_to(access).order_by("status", *NEWEST_FIRST))
    return cut(payments, index(payments, start), limit)


def page_of_all_organizations(_access: Access, *, start: str | None, limit: int) -> Page:
    payments = newest_first(Payment.objects.all())
    return cut(payments, index(payments, start), limit)


OFFSET = "pt_offset"


def newest_first(payments: PaymentQuerySet) -> list[Payment]:
    return list(payments.order_by(*NEWEST_FIRST))


def index(payments: list[Payment], start: str | None) -> int:
    return 0 if start is None else [payment.id for payment in payments].index(start)


def cut(payments: list[Payment], first: int, limit: int) -> Page:
    """Return the page that begins with `payments[first]`."""
    ids = [payment.id for payment in payments]
    return Page(
        payments[first : first + limit],
        previous_from=ids[max(0, first - limit)] if first > 0 else None,
        next_from=ids[first + limit] if first + limit < len(payments) else None,
    )


def paginated_by(page: Callable[..., Page]) -> type[KeysetPagination]:
    """Return the pagination of the list with other pages."""

    class WrongPagination(KeysetPagination):
        def paginate_content(self, content: Content, request: Request) -> list[Any]:
            assert self.parameters is not None
            limit, start, _ = self.parameters
            self.page = page(request.auth.access, start=start, limit=limit)  # type: ignore[union-attr]
            return self.page.rows

    return WrongPagination


def test_replayed_walk_keeps_its_promises(api: Api) -> None:
    walk_during_changes(api)


@pytest.mark.once
@pytest.mark.parametrize(
    ("wrong_page", "error"),
    [
        pytest.param(page_after_start, "skipped", id="P1"),
        pytest.param(page_by_offset, "repeated", id="P2"),
        pytest.param(page_by_status, "repeated", id="P3"),
        pytest.param(page_of_all_organizations, "foreign", id="P4"),
    ],
)
def test_wrong_page_breaks_a_promise(
    api: Api, monkeypatch: pytest.MonkeyPatch, wrong_page: Callable[..., Page], error: str
) -> None:
    monkeypatch.setattr(PaymentList, "pagination_class", paginated_by(wrong_page))

    with pytest.raises(AssertionError, match=f"^{error}: "):
        walk_during_changes(api)


# The same promises of the deployed service, while two writers commit.


@pytest.mark.processes
@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_walks_over_http_keep_their_promises_during_writes(service: Service, db: None, seed: int) -> None:
    walk_while_two_write(service.base_url, service.database_url, walks=times(400, long=100_000), seed=seed)
