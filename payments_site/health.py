"""Whether this process lives, and whether it can serve: for whoever starts, restarts and balances it."""

import logging
from functools import cache

from django.db import Error, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

logger = logging.getLogger(__name__)


@require_safe
def alive(request: HttpRequest) -> JsonResponse:
    """Answer: that is all there is to say. The database may be down; a restart would not help it."""
    return health("ok")


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Say whether the database answers and has all tables as this code knows them."""
    try:
        applied = set(MigrationRecorder(connection).applied_migrations())
    except Error as error:
        return not_ready("The database does not answer.", why=error)
    missing = sorted(".".join(migration) for migration in latest_migrations() - applied)
    return not_ready(f"Not migrated: {', '.join(missing)}.") if missing else health("ok")


@cache
def latest_migrations() -> set[tuple[str, str]]:
    """Return the last migration of each application, which has all others before it."""
    return set(MigrationLoader(None).graph.leaf_nodes())


def not_ready(words: str, *, why: Exception | None = None) -> JsonResponse:
    """Answer anybody in words of ours; what the database said is for the log."""
    logger.warning("The database %s is not ready: %s", connection.settings_dict["NAME"], why or words)
    return health(words, status=503)


def health(words: str, *, status: int = 200) -> JsonResponse:
    return JsonResponse({"status": words}, status=status, headers={"Cache-Control": "no-store"})
