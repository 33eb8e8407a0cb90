"""A client that polls with If-None-Match gets 304 exactly as long as its response is unchanged."""

from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from payments.models import Changes, Status
from payments.models.access_state import AccessStateQuerySet
from tests.api.walk_machine import Walks
from tests.support.api import Api
from tests.support.scale import examples

PATHS = ("/v2/payments?limit=2", "/v2/payments?status=open,failed&sort=asc")


class Known(NamedTuple):
    """A response that a client has stored."""

    etag: str
    body: bytes


class Polls(Walks):
    """Polls two lists after each step, and follows the first payment of each."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.known: dict[str, Known] = {}

    @invariant()
    def poll(self) -> None:
        for path in PATHS:
            payments = self.poll_path(path).json()["_embedded"]["payments"]
            for payment in payments[:1]:
                self.poll_path(f"/v2/payments/{payment['id']}")

    def poll_path(self, path: str) -> Any:
        """Request a path with the ETag of the stored response and, to compare, without it."""
        known = self.known.get(path, Known('"none"', b""))
        polled = self.api.send("GET", path, If_None_Match=known.etag)
        current = self.api.get(path)
        if polled.status_code == 304:
            assert current.content == known.body, f"stale: {path}"
            assert polled["ETag"] == known.etag, f"another ETag: {path}"
        else:
            assert polled.content == current.content != known.body, f"sent again: {path}"
            self.known[path] = Known(polled["ETag"], polled.content)
        return current


@pytest.mark.also("citus", long=True)
@pytest.mark.once("postgresql")
@pytest.mark.hypothesis
def test_polling_client_never_gets_a_stale_304(api: Api) -> None:
    machine: Any = partial(Polls, api)
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=20, max_examples=examples(15, long=2_000)))


def poll_after_a_change(api: Api) -> None:
    polls = Polls(api)
    with polls.stack:
        [payment_id, *_] = polls.store_first_payments(["A", "B", "C", "D"])
        polls.poll()
        polls.change_payment(payment_id, Status.FAILED, None)
        polls.poll()


def record_nothing(_states: AccessStateQuerySet, _changes: Changes, **_options: Any) -> None:
    """A wrong `record`: it forgets that payments have changed."""


@pytest.mark.once
def test_missed_change_makes_a_304_stale(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    poll_after_a_change(api)
    monkeypatch.setattr(AccessStateQuerySet, "record", record_nothing)

    with pytest.raises(AssertionError, match=r"^stale: "):
        poll_after_a_change(api)
