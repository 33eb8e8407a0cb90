"""What is told of the work while it is done, to whoever keeps metrics or traces. Mostly nobody does."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class Progress(Protocol):
    """How far an import has come."""

    read: int
    refused: int
    changed: int


class Observer:
    """Is told what happens; each method may be left as it is."""

    def statement(self, sql: str, run: Callable[[], Result]) -> Result:
        """Run a statement, and return what came of it."""
        return run()

    def import_began(self) -> None:
        """Note that this process imports from now on."""

    def import_went_on(self, progress: Progress) -> None:
        """Note how far it has come. What it has changed so far may still be undone."""

    def import_ended(self, progress: Progress, *, outcome: str) -> None:
        """Note what came of it: `succeeded`, `refused` where some records were, `failed` where it was cut off."""

    def replica_lag(self, seconds: float) -> None:
        """Note how far the replica that is read from is behind."""

    def replica_passed_over(self, reason: str) -> None:
        """Note that the primary was read where a replica might have been."""


class Statements(threading.local):
    """Whether a thread is running one."""

    is_one_run = False


observers: list[Observer] = []
statements = Statements()


def run_statement(sql: str, run: Callable[[], Result]) -> Result:
    """Run a statement, with every observer around it; one that is run within another is a part of that."""
    if not observers or statements.is_one_run:
        return run()
    for observer in observers:
        run = partial(observer.statement, sql, run)
    statements.is_one_run = True
    try:
        return run()
    finally:
        statements.is_one_run = False


@contextmanager
def importing(progress: Progress) -> Iterator[None]:
    """Tell that an import begins, and what came of it."""
    for observer in observers:
        observer.import_began()
    outcome = "failed"
    try:
        yield
        outcome = "refused" if progress.refused else "succeeded"
    finally:
        for observer in observers:
            observer.import_ended(progress, outcome=outcome)


def import_went_on(progress: Progress) -> None:
    for observer in observers:
        observer.import_went_on(progress)


def set_replica_lag(seconds: float) -> None:
    """Tell how far the replica that is read from is behind."""
    for observer in observers:
        observer.replica_lag(seconds)


def count_passed_over(reason: str) -> None:
    """Tell that the primary was read where a replica might have been; `reason` is one of a few words."""
    for observer in observers:
        observer.replica_passed_over(reason)
