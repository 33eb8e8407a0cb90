"""The API keys of requests: looks up a key in the database."""

from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from payments import api_keys
from payments.database.statements import Placeholder, Statement
from payments.expressions import SecondsText
from payments.models import Access, ApiKey
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, has_replica, run_with_failover


class AuthenticatedKey(NamedTuple):
    """The API key of a request."""

    id: int
    access: Access
    last_used_at: str | None  # seconds since 1970
    revision: int | None = None  # of the organization's payments on the primary; read only if there is a replica


def find_key(text: str, *, now: datetime) -> AuthenticatedKey | None:
    """Return the usable key with this text; `now` is in UTC. One query, unless the primary is unavailable.

    It reads the primary, so new and revoked keys take effect immediately. It reads a replica while the primary is
    unavailable.
    """
    values = {"digest": api_keys.digest(text), "now": str(now.replace(tzinfo=None))}
    if not has_replica():
        rows = key_statement().rows(values)
        return authenticated_key(*rows[0]) if rows else None

    def rows_of(using: str) -> list[Any]:
        return key_statement("organization__revision").rows(values, using)

    rows, server = run_with_failover(rows_of, primary=process.primary, replica=process.replica)
    if server is not process.primary:
        # Only the primary can prove that a key does not exist, and only its revision is current.
        rows = [(*row[:-1], None) for row in rows] or rows_of(PRIMARY)
    return authenticated_key(*rows[0]) if rows else None


def authenticated_key(
    key_id: int, organization_id: int, mode: str, last_used_at: str | None, revision: int | None = None
) -> AuthenticatedKey:
    return AuthenticatedKey(key_id, Access(organization_id, mode), last_used_at, revision)


@lru_cache
def key_statement(*more: str) -> Statement[Any]:
    keys = ApiKey.objects.usable(now=Placeholder("now")).filter(digest=Placeholder("digest"))
    return Statement(keys.values_list("id", "organization_id", "mode", SecondsText("last_used_at"), *more))
