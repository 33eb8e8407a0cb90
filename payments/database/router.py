"""The database router. All models are read and written on the primary; `routing` chooses the server for lists."""

from typing import Any

from payments.runtime.servers import PRIMARY


class PrimaryRouter:
    """Runs migrations only on the primary."""

    def allow_migrate(self, db: str, _app_label: str, **_hints: Any) -> bool:
        return db == PRIMARY
