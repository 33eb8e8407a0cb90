"""Whether this process lives, and whether it can serve: for whoever starts, restarts and balances it."""

import logging
from functools import cache

from django.db import Error, connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from payments.runtime.servers import ask_either, primary

logger = logging.getLogger(__name__)


@require_safe
def alive(request: HttpRequest) -> JsonResponse:
    """Answer: that is all there is to say. The database may be down; a restart would not help it."""
    return health("ok")


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Say whether the database answers, be it by a replica, and has all tables as this code knows them."""
    try:
        applied, server = ask_either(applied_migrations)
    except Error as error:
        return not_ready("The database does not answer.", why=error)
    missing = sorted(".".join(migration) for migration in latest_migrations() - applied)
    if missing:
        return not_ready(f"Not migrated: {', '.join(missing)}.")
    return health("ok" if server is primary else "The primary does not answer; payments are read on a replica.")


def applied_migrations(using: str) -> set[tuple[str, str]]:
    return set(MigrationRecorder(connections[using]).applied_migrations())


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
