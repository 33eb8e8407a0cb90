"""Shares of a worker's threads, so that slow work of one kind or of one client leaves threads for other requests."""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Condition, Lock

from payments.runtime import time_limits
from payments.runtime.time_limits import TimeLimit


class NoPlace(Exception):
    """A client, or a kind of work, already uses its share."""


class NoThread(NoPlace):
    """Slow work of others uses all threads that are not reserved for fast requests."""


class Shares:
    """The shares of a worker with so many threads. The public methods return context managers for slow work.

    Entering one raises NoPlace if its share is used, and NoThread if others use the threads.

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
        self.waiting: dict[tuple[Hashable, Hashable], object] = {}  # in order: a thread for each client of a share
        self.hashing = Lock()  # a worker hashes one password at a time

    def filters(self, client: Hashable) -> AbstractContextManager[None]:
        """Read with filters: for each client in half of the threads, but at least in two. One more read may wait."""
        return self.thread(("filters", client), self.filters_max, client, time_limits.WAIT_FOR_READ)

    def staff_pages(self, client: Hashable) -> AbstractContextManager[None]:
        """Respond to a user with a page: in half of the threads. One more page of each user may wait."""
        return self.thread("staff pages", self.staff_pages_max, client, time_limits.WAIT_FOR_PAGE)

    def public_pages(self, client: Hashable) -> AbstractContextManager[None]:
        """Respond to a stranger with a page: in a quarter of the threads. One more page of each stranger may wait."""
        return self.thread("public pages", self.public_pages_max, client, time_limits.WAIT_FOR_PAGE)

    def imports(self, client: Hashable) -> AbstractContextManager[None]:
        """Import payments: one import at a time. No further one waits."""
        return self.thread("imports", 1, client, time_limits.NO_WAIT)

    def exports(self) -> AbstractContextManager[None]:
        """Compute a part of an export: one at a time, because this delays all other threads."""
        return self.place("exports")

    def logins(self, address: str) -> AbstractContextManager[None]:
        """Check a password from an address: one at a time for each address."""
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
    def thread(self, name: Hashable, places_max: int, client: Hashable, wait: TimeLimit) -> Iterator[None]:
        with self.changed:
            self.occupy_thread(name, places_max, client, wait)
        try:
            yield
        finally:
            with self.changed:
                self.occupied -= 1
                self.release(name)

    def occupy_thread(self, name: Hashable, places_max: int, client: Hashable, wait: TimeLimit) -> None:
        """Occupy a thread and a place of a share. Wait for the place, if no other thread of the client waits for it.

        If all threads are occupied, a thread that only waits gives way.
        """
        waiter = (name, client)
        must_wait = self.first_waiter(name) is not None or self.running[name] >= places_max
        if must_wait and (waiter in self.waiting or self.occupied >= self.threads_max):
            raise NoPlace
        if self.occupied >= self.threads_max:
            if not self.waiting:
                raise NoThread
            self.waiting.popitem()
            self.changed.notify_all()
        self.occupied += 1
        try:
            if must_wait:
                self.wait(waiter, places_max, wait)
            self.occupy(name, places_max)
        except NoPlace:
            self.occupied -= 1
            raise

    def first_waiter(self, name: Hashable) -> tuple[Hashable, Hashable] | None:
        """Return the name and the client of the thread that gets the next place of a share."""
        return next((waiter for waiter in self.waiting if waiter[0] == name), None)

    def wait(self, waiter: tuple[Hashable, Hashable], places_max: int, limit: TimeLimit) -> None:
        """Wait for a place of a share. The clients get it in turn.

        :raises NoPlace: there was none in time, or the thread had to give way
        """
        name, _ = waiter
        ticket = self.waiting[waiter] = object()

        def gives_way() -> bool:
            return self.waiting.get(waiter) is not ticket

        def has_place() -> bool:
            return self.running[name] < places_max and self.first_waiter(name) == waiter

        self.changed.wait_for(lambda: gives_way() or has_place(), limit.seconds)
        if gives_way():
            raise NoPlace
        del self.waiting[waiter]
        self.changed.notify_all()  # another place may be free for the next thread

    def occupy(self, name: Hashable, places_max: int) -> None:
        if self.running[name] >= places_max:
            raise NoPlace
        self.running[name] += 1

    def release(self, name: Hashable) -> None:
        self.running[name] -= 1
        if not self.running[name]:
            del self.running[name]
        self.changed.notify_all()
