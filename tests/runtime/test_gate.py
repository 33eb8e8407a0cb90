"""The gate limits how many requests run, and lets the clients that wait enter in turn."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from payments.runtime.gate import Gate
from tests.support.threads import most_at_once
from tests.support.waiting import wait_until

TIMEOUT = 60


def waiting(gate: Gate) -> int:
    return sum(len(requests) for requests in gate.waiting.values())


def order_of(gate: Gate, clients: Sequence[str]) -> list[str]:
    """Return the order in which requests of these clients enter. The gate is full while they arrive."""
    entered: list[str] = []

    def request(client: str) -> None:
        gate.enter(client)
        entered.append(client)
        gate.leave()

    with ThreadPoolExecutor(len(clients)) as pool:
        gate.enter("first")
        futures = []
        for number, client in enumerate(clients, start=1):
            futures.append(pool.submit(request, client))
            wait_until(lambda: waiting(gate) == number)  # noqa: B023  ends before the next number
        gate.leave()
        for future in futures:
            future.result(timeout=TIMEOUT)
    return entered


@pytest.mark.parametrize(
    ("clients", "order"),
    [
        ("aaa", "aaa"),
        ("aaab", "abaa"),
        ("aaabbc", "abcaba"),
        ("abcabc", "abcabc"),
    ],
)
def test_clients_enter_in_turn(clients: str, order: str) -> None:
    gate = Gate(1)

    assert order_of(gate, clients) == list(order)
    assert gate.free == 1
    assert not gate.waiting


def test_requests_of_a_client_enter_in_their_order() -> None:
    gate = Gate(1)
    entered: list[int] = []

    def request(number: int) -> None:
        gate.enter("a")
        entered.append(number)
        gate.leave()

    with ThreadPoolExecutor() as pool:
        gate.enter("a")
        for number in range(4):
            pool.submit(request, number)
            wait_until(lambda: waiting(gate) == number + 1)  # noqa: B023  ends before the next number
        gate.leave()

    assert entered == [0, 1, 2, 3]


def test_no_more_requests_run_than_there_are_places() -> None:
    gate = Gate(3)

    most = most_at_once([(partial(gate.enter, client), gate.leave) for client in "aaaaaabbcd"])

    assert most == 3
    assert gate.free == 3
    assert not gate.waiting
