"""Which database is asked where there are two, the primary and a replica of it."""

from typing import Any

from payments.servers import PRIMARY, REPLICA, replica


class ReplicaRouter:
    """Has what a key lists read on the replica, while that keeps up; all else is the primary's."""

    def db_for_read(self, model: Any, *, key: Any = None, **_hints: Any) -> str | None:
        return REPLICA if key is not None and replica.keeps_up() else None

    def allow_migrate(self, db: str, _app_label: str, **_hints: Any) -> bool:
        return db == PRIMARY
