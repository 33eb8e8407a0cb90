"""The database router: all models are read and written on the primary; lists choose their server in `routing`."""

from typing import Any

from payments.runtime.servers import PRIMARY


class PrimaryRouter:
    """Runs migrations only on the primary."""

    def allow_migrate(self, db: str, _app_label: str, **_hints: Any) -> bool:
        return db == PRIMARY
