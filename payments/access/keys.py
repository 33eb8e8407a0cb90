"""The API keys of requests: looks up a key in the database, in one round trip with what the request reads."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from payments import api_keys
from payments.access.throttling import has_requests_left
from payments.admission import run_admitted
from payments.database.round_trips import NOTHING, Query, ReadAhead, can_pipeline, unwrap
from payments.database.statements import Placeholder, Statement
from payments.expressions import SecondsText
from payments.models import Access, ApiKey
from payments.runtime.circuit_breaker import CircuitOpen, Guard
from payments.runtime.process import KnownKey, process
from payments.runtime.servers import PRIMARY, has_replica, run_with_failover
from payments.runtime.shares import NoPlace

KEYS = "API keys"  # the name of their circuit breaker

# Returns the queries of a request, if its key has this access.
QueriesFor: TypeAlias = Callable[[Access], Sequence[Query]]


class AuthenticatedKey(NamedTuple):
    """The API key of a request."""

    id: int
    access: Access
    last_used_at: str | None  # seconds since 1970
    digest: str
    is_from_primary: bool = True
    read_ahead: ReadAhead = NOTHING


# The rows of the key statement, and what was read in the same round trip.
KeyRead: TypeAlias = tuple[list[tuple[Any, ...]], ReadAhead]


def no_queries(_access: Access) -> Sequence[Query]:
    return ()


def find_key(text: str, *, now: datetime, queries_for: QueriesFor = no_queries) -> AuthenticatedKey | None:
    """Return the active key with this text; `now` is in UTC. One query, unless the primary is unavailable.

    A text without the form of a key causes no query.

    It reads the primary, so new and revoked keys take effect immediately. It reads a replica while the primary is
    unavailable.
    """
    digest = api_keys.digest(text)
    known = process.known_keys.get(digest)
    if known is None and not api_keys.is_key(text):
        return None
    query = Query(key_statement(), {"digest": digest, "now": str(now.replace(tzinfo=None))})
    find = find_key_with_failover if has_replica() else find_key_on_primary
    key = find(query, known, queries_for)
    if key is None:
        process.known_keys.pop(digest, None)
    elif known != (key.id, *key.access):
        process.remember_key(digest, KnownKey(key.id, *key.access))
    return key


def find_key_on_primary(query: Query, known: KnownKey | None, queries_for: QueriesFor) -> AuthenticatedKey | None:
    with Guard(process.data_breakers, KEYS):
        rows, read_ahead = read_key(query, known, queries_for)
    return authenticated_key(query, rows, read_ahead=read_ahead)


def find_key_with_failover(query: Query, known: KnownKey | None, queries_for: QueriesFor) -> AuthenticatedKey | None:
    def read_on(using: str) -> KeyRead:
        return read_key(query, known, queries_for) if using == PRIMARY else (query.rows(using), NOTHING)

    (rows, read_ahead), server = run_with_failover(read_on, primary=process.primary, replica=process.replica)
    is_from_primary = server is process.primary
    if not rows and not is_from_primary:
        rows, is_from_primary = query.rows(), True  # only the primary can prove that a key does not exist
    return authenticated_key(query, rows, is_from_primary=is_from_primary, read_ahead=read_ahead)


def read_key(query: Query, known: KnownKey | None, queries_for: QueriesFor) -> KeyRead:
    """Run the key statement. If the key is known, the queries of the request run in the same round trip.

    They run with the organization and mode that the key had when this process last saw it. Whether the key still has
    them is known only from the rows of the key statement.
    """
    if known is None or not has_requests_left(known.id) or not can_pipeline():
        return query.rows(), NOTHING
    access = Access(known.organization_id, known.mode)
    queries = queries_for(access)
    try:
        key, *others = run_admitted(access, queries, client=query.values["digest"], key_query=query, can_wait=False)
    except (NoPlace, CircuitOpen):  # the response reports it, if the key is valid
        return query.rows(), NOTHING
    return unwrap(key), ReadAhead(queries, others)


def authenticated_key(query: Query, rows: list[tuple[Any, ...]], **details: Any) -> AuthenticatedKey | None:
    """Return the key of the row that the key statement returned; None if there is none."""
    if not rows:
        return None
    [(key_id, organization_id, mode, last_used_at)] = rows
    return AuthenticatedKey(
        key_id, Access(organization_id, mode), last_used_at, digest=query.values["digest"], **details
    )


@lru_cache
def key_statement() -> Statement[Any]:
    keys = ApiKey.objects.active(now=Placeholder("now")).filter(digest=Placeholder("digest"))
    return Statement(keys.values_list("id", "organization_id", "mode", SecondsText("last_used_at")))
