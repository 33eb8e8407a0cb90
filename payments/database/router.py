"""Routes reads to the replica."""

from typing import Any

from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, REPLICA


class ReplicaRouter:
    """Reads payments from the replica while it is usable, and everything else from the primary.

    The API passes the hint `key` when it reads the payments of a key.
    """

    def db_for_read(self, model: Any, *, key: Any = None, **_hints: Any) -> str | None:
        if key is None:
            return None
        if process.replica.is_usable():
            return REPLICA
        process.hooks.replica_skipped("away" if process.replica.breaker.is_open else "lag")
        return None

    def allow_migrate(self, db: str, _app_label: str, **_hints: Any) -> bool:
        return db == PRIMARY
