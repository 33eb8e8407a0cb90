"""Instrumentation hooks of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from payments.runtime.hooks import Hook
from payments.runtime.process import process

HookT = TypeVar("HookT", bound=Hook)


@contextmanager
def registered(hook: HookT) -> Iterator[HookT]:
    """Register a hook in this process until the block ends."""
    process.hooks.register(hook)
    try:
        yield hook
    finally:
        process.hooks.registered.remove(hook)
