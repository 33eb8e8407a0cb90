"""Instrumentation hooks: callbacks for metrics and traces. Usually none is registered."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase

Result = TypeVar("Result")


class Progress(Protocol):
    """The progress of an import."""

    read: int
    refused: int

    @property
    def written(self) -> int: ...


class Hook:
    """Base class of instrumentation hooks. A subclass overrides the methods that it needs."""

    def worker_started(self) -> None:
        """Called when this process starts to serve requests."""

    def request(self, request: HttpRequest, respond: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
        """Call `respond` with the request and return its response."""
        return respond(request)

    def statement(self, sql: str, run: Callable[[], Result]) -> Result:
        """Run a statement and return its result."""
        return run()

    def import_started(self) -> None:
        """Called when this process starts an import."""

    def import_progressed(self, progress: Progress) -> None:
        """Called after each batch of an import. The transaction may still be rolled back."""

    def import_finished(self, progress: Progress, *, outcome: str) -> None:
        """Called at the end of an import.

        The outcome is `succeeded`, `refused` if some records were invalid, or `failed` if the import was interrupted.
        """

    def replica_lag_measured(self, seconds: float) -> None:
        """Called when the replication lag has been measured."""

    def replica_skipped(self, reason: str) -> None:
        """Called when the primary is read although a replica is configured.

        The reason is `away` if the replica's circuit breaker is open, `lag` if the replica lags too far behind, or
        `behind` if it lacks the last change of these payments.
        """


class ThreadState(threading.local):
    """Whether the current thread is inside a statement."""

    is_running_statement = False


class Hooks:
    """Calls all registered hooks. The hook that is registered last is the outermost one."""

    def __init__(self) -> None:
        self.registered: list[Hook] = []
        self.thread = ThreadState()

    def register(self, hook: Hook) -> None:
        self.registered.append(hook)

    def worker_started(self) -> None:
        for hook in self.registered:
            hook.worker_started()

    def respond(self, request: HttpRequest, respond: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
        for hook in self.registered:
            respond = partial(hook.request, respond=respond)
        return respond(request)

    def run_statement(self, sql: str, run: Callable[[], Result]) -> Result:
        """Run a statement inside all hooks. A statement within another one counts as a part of it."""
        if not self.registered or self.thread.is_running_statement:
            return run()
        for hook in self.registered:
            run = partial(hook.statement, sql, run)
        self.thread.is_running_statement = True
        try:
            return run()
        finally:
            self.thread.is_running_statement = False

    @contextmanager
    def importing(self, progress: Progress) -> Iterator[None]:
        """Report the start and the outcome of an import, which runs in the block."""
        for hook in self.registered:
            hook.import_started()
        outcome = "failed"
        try:
            yield
            outcome = "refused" if progress.refused else "succeeded"
        finally:
            for hook in self.registered:
                hook.import_finished(progress, outcome=outcome)

    def import_progressed(self, progress: Progress) -> None:
        for hook in self.registered:
            hook.import_progressed(progress)

    def replica_lag_measured(self, seconds: float) -> None:
        for hook in self.registered:
            hook.replica_lag_measured(seconds)

    def replica_skipped(self, reason: str) -> None:
        for hook in self.registered:
            hook.replica_skipped(reason)
