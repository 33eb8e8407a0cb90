"""Slots: what a request occupies while it runs, and gives back while it waits."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

from payments.runtime.process import process
from payments.runtime.sessions import Session, Sessions


class Slot:
    """A place at the gate, a turn, and a database session. Use it as a context manager for a request of a client."""

    def __init__(self, sessions: Sessions, client: Hashable, *, takes_turn: bool) -> None:
        self.sessions = sessions
        self.client = client
        self.takes_turn = takes_turn

    def __enter__(self) -> None:
        self.begin(takes_turn=self.takes_turn)
        self.token: Token[Slot | None] = current.set(self)

    def __exit__(self, *_error: object) -> None:
        current.reset(self.token)
        self.end()

    def begin(self, *, takes_turn: bool) -> None:
        process.gate.enter(self.client)
        try:
            if takes_turn:
                process.turns.begin()
            self.session: Session = self.sessions.take()
            self.session.begin()
        except BaseException:
            self.leave()
            raise

    def end(self) -> None:
        try:
            self.session.end()
        finally:
            self.leave()

    def leave(self) -> None:
        process.turns.end()
        process.gate.leave()


current: ContextVar[Slot | None] = ContextVar("current", default=None)


@contextmanager
def paused() -> Iterator[None]:
    """Give back the slot of the current request during the block, in which it waits and does not use the database."""
    slot = current.get()
    if slot is None:  # a command, or a test
        yield
        return
    slot.end()
    try:
        yield
    finally:
        slot.begin(takes_turn=False)
