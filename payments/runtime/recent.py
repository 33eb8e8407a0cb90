"""A dictionary of limited size, for the threads of a process."""

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RecentValues(Generic[Key, Value]):
    """The values that were set last. The oldest is removed first."""

    def __init__(self, values_max: int) -> None:
        self.values_max = values_max
        self.values: dict[Key, Value] = {}
        self.lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        return self.values.get(key)

    def set(self, key: Key, value: Value) -> None:
        if self.values.get(key) == value:
            return
        with self.lock:
            self.values.pop(key, None)
            if len(self.values) >= self.values_max:
                del self.values[next(iter(self.values))]
            self.values[key] = value

    def remove(self, key: Key) -> None:
        with self.lock:
            self.values.pop(key, None)
