"""The gate of a worker: how many requests run at a time, and which one runs next.

A worker has more threads than requests that run. The others wait at the gate, which costs little. Among these, each
client has its turn: a client with many requests delays its own, and hardly those of other clients.
"""

from collections import deque
from collections.abc import Hashable
from threading import Lock


class Gate:
    """Lets `places` requests run at a time. The others wait, the requests of one client in their order."""

    def __init__(self, places: int) -> None:
        self.lock = Lock()
        self.free = places
        # Requests that wait, by client, next client first. There are none while a place is free.
        self.waiting: dict[Hashable, deque[Lock]] = {}

    def enter(self, client: Hashable) -> None:
        """Wait for a place, and occupy it."""
        with self.lock:
            if self.free:
                self.free -= 1
                return
            turn = Lock()  # is released when the place is free
            turn.acquire()
            self.waiting.setdefault(client, deque()).append(turn)
        turn.acquire()

    def leave(self) -> None:
        """Give the place to the next client that waits."""
        with self.lock:
            if not self.waiting:
                self.free += 1
                return
            client = next(iter(self.waiting))
            requests = self.waiting.pop(client)
            requests.popleft().release()
            if requests:
                self.waiting[client] = requests  # after all other clients
