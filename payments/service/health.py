"""Health checks: whether the process runs, and whether it can serve requests."""

import logging

from django.db import Error, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from payments.database.migration_state import explain_encoding, read_migration_state
from payments.database.workers import find_workers
from payments.runtime.process import process

logger = logging.getLogger(__name__)


@require_safe
def alive(request: HttpRequest) -> JsonResponse:
    """Respond without the database: a restart would not repair it."""
    return health("ok")


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Respond with 200 if a database server responds and has the migrations of this code."""
    try:
        state, server = process.run_with_failover(read_migration_state)
    except Error as error:
        return not_ready("The database is unavailable.", reason=error)
    if problem := explain_encoding(server.alias):
        return not_ready(problem)
    if state.is_obsolete:
        return not_ready("An earlier development version made the database. Create a new one, and import again.")
    if state.missing:
        return not_ready(f"Not migrated: {', '.join(state.missing)}.")
    lost = ", ".join(worker for worker, responds in find_workers(server.alias).items() if not responds)
    status = f"These Citus workers do not respond, others do: {lost}." if lost else "ok"
    if server is not process.primary:
        status = "The primary is unavailable. Payments are read from a replica."
    return health(status)


def not_ready(status: str, *, reason: Exception | None = None) -> JsonResponse:
    """Respond with 503. The endpoint needs no key, so the database's own error is only logged."""
    logger.warning("The database %s is not ready: %s", connection.settings_dict["NAME"], reason or status)
    return health(status, status_code=503)


def health(status: str, *, status_code: int = 200) -> JsonResponse:
    return JsonResponse({"status": status}, status=status_code, headers={"Cache-Control": "no-store"})
