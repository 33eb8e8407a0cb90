"""Which database is asked where there are two, the primary and a replica of it."""

from typing import Any

from payments.runtime.hooks import count_passed_over
from payments.runtime.servers import PRIMARY, REPLICA, replica


class ReplicaRouter:
    """Has what a key lists read on the replica, while that keeps up; all else is the primary's."""

    def db_for_read(self, model: Any, *, key: Any = None, **_hints: Any) -> str | None:
        if key is None:
            return None
        if replica.keeps_up():
            return REPLICA
        count_passed_over("away" if replica.is_away else "lag")
        return None

    def allow_migrate(self, db: str, _app_label: str, **_hints: Any) -> bool:
        return db == PRIMARY
