"""Shares of a worker's threads, so that slow work of one kind or of one client leaves threads for other requests."""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Condition, Lock

from payments.runtime import time_limits


class NoPlace(Exception):
    """A client, or a kind of work, already uses its share."""


class NoThread(NoPlace):
    """Slow work of others uses all threads that are not reserved for fast requests."""


class Shares:
    """The shares of a worker with so many threads. The public methods return context managers for slow work.

    All slow work together leaves one thread for fast requests. A worker with one thread does one thing at a time.
    """

    def __init__(self, threads: int) -> None:
        self.threads_max = max(1, threads - 1)
        self.staff_pages_max = max(1, threads // 2)
        self.public_pages_max = max(1, threads // 4)
        self.filters_max = max(2, threads // 2)
        self.changed = Condition()
        self.occupied = 0  # threads that slow work uses, or that wait for their share
        self.running: Counter[Hashable] = Counter()  # by the name of a share
        self.waiting: dict[Hashable, object] = {}  # at most one thread for each client of a share
        self.hashing = Lock()  # a worker hashes one password at a time

    def filters(self, client: Hashable) -> AbstractContextManager[None]:
        """Read with filters: for each client in half of the threads, but at least in two. One more read may wait.

        Entering raises NoPlace if the client uses its share, and NoThread if others use the threads.
        """
        return self.thread(("filters", client), self.filters_max, client)

    def staff_pages(self, client: Hashable) -> AbstractContextManager[None]:
        """Respond to a user with a page: in half of the threads. One more page of each user may wait.

        Entering raises NoPlace or NoThread.
        """
        return self.thread("staff pages", self.staff_pages_max, client)

    def public_pages(self, client: Hashable) -> AbstractContextManager[None]:
        """Respond to a stranger with a page: in a quarter of the threads. One more page of each stranger may wait.

        Entering raises NoPlace or NoThread.
        """
        return self.thread("public pages", self.public_pages_max, client)

    def exports(self) -> AbstractContextManager[None]:
        """Compute a part of an export: one at a time, because this delays all other threads. It may raise NoPlace."""
        return self.place("exports")

    def logins(self, address: str) -> AbstractContextManager[None]:
        """Check a password from an address: one at a time for each address. Entering raises NoPlace."""
        return self.place(("logins", address))

    @contextmanager
    def place(self, name: Hashable) -> Iterator[None]:
        """Occupy the only place of a share, in a thread that a page occupies already."""
        with self.changed:
            self.occupy(name, 1)
        try:
            yield
        finally:
            with self.changed:
                self.release(name)

    @contextmanager
    def thread(self, name: Hashable, places_max: int, client: Hashable) -> Iterator[None]:
        with self.changed:
            self.occupy_thread(name, places_max, client)
        try:
            yield
        finally:
            with self.changed:
                self.occupied -= 1
                self.release(name)

    def occupy_thread(self, name: Hashable, places_max: int, client: Hashable) -> None:
        """Occupy a thread and a place of a share. Wait for the place, if no other thread of the client waits for it.

        If all threads are occupied, a thread that only waits gives way.
        """
        queue = (name, client)
        must_wait = queue in self.waiting or self.running[name] >= places_max
        if must_wait and (queue in self.waiting or self.occupied >= self.threads_max):
            raise NoPlace
        if self.occupied >= self.threads_max:
            if not self.waiting:
                raise NoThread
            self.waiting.popitem()
            self.changed.notify_all()
        self.occupied += 1
        try:
            if must_wait:
                self.wait(name, places_max, queue)
            self.occupy(name, places_max)
        except NoPlace:
            self.occupied -= 1
            raise

    def wait(self, name: Hashable, places_max: int, queue: Hashable) -> None:
        """Wait for a place of a share.

        :raises NoPlace: there was none in time, or the thread had to give way
        """
        ticket = self.waiting[queue] = object()

        def gives_way() -> bool:
            return self.waiting.get(queue) is not ticket

        self.changed.wait_for(
            lambda: gives_way() or self.running[name] < places_max, time_limits.WAIT_FOR_PLACE.seconds
        )
        if gives_way():
            raise NoPlace
        del self.waiting[queue]

    def occupy(self, name: Hashable, places_max: int) -> None:
        if self.running[name] >= places_max:
            raise NoPlace
        self.running[name] += 1

    def release(self, name: Hashable) -> None:
        self.running[name] -= 1
        if not self.running[name]:
            del self.running[name]
        self.changed.notify_all()
