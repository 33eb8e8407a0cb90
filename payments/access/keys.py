"""The API key of a request: how it is read, and when its use is written."""

import logging
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any, NamedTuple, Self

from django.db import Error
from django.db.models import OuterRef, Q, Subquery, TextField
from django.db.models.functions import Cast, Now

from payments.database.limits import transaction_without_waiting
from payments.database.statements import Placeholder, Statement, WrongStatement, compile_queryset
from payments.models import Access, AccessState, ApiKey, ApiKeyQuerySet
from payments.models.expressions import SecondsText
from payments.runtime.circuit_breaker import Guard
from payments.runtime.process import process
from payments.runtime.servers import has_replica

KEYS = "API keys"  # the name of their circuit breaker

KEY_COLUMNS = ("id", "organization_id", "mode", "scope", SecondsText("last_used_at"))

USE_INTERVAL_SECONDS = 60

# After a failed write, later requests would probably fail too.
PAUSE_AFTER_FAILURE = timedelta(seconds=10)

logger = logging.getLogger(__name__)


class DataOfKey(NamedTuple):
    """What an API key gives access to, as the name of a circuit breaker. `name` is plural."""

    digest: str
    name: str

    def __str__(self) -> str:
        return f"the {self.name} of an API key"


class AuthenticatedKey(NamedTuple):
    """The API key of a request.

    `revision` is that of the payments when the key was read; None if it was not read, or not on the primary.
    """

    id: int
    access: Access
    scope: str
    digest: str
    used_at: float | None  # the stored time of the last use, in seconds since 1970
    revision: int | None = None

    @classmethod
    def of(cls, digest: str, row: Sequence[Any]) -> Self:
        """Return the key with the values of a row of `key_statement` or `key_and_revision_statement`.

        :raises WrongStatement: it is a row of another statement
        """
        try:
            key_id, organization_id, mode, scope, used_at, *revision = row
            return cls(
                int(key_id),
                Access(int(organization_id), mode),
                scope,
                digest,
                used_at=None if used_at is None else float(used_at),
                revision=int(revision[0] or 0) if revision else None,  # null: the payments have never changed
            )
        except (TypeError, ValueError):
            raise WrongStatement from None


def find_key(digest: str) -> AuthenticatedKey | None:
    """Return the active key with this digest; None if there is none. One statement, unless the primary is unavailable.

    It reads the primary, so new and revoked keys take effect immediately. It reads a replica while the primary is
    unavailable.
    """
    return read_key(key_statement(), digest, guard=key_guard(KEYS))


def find_key_and_revision(digest: str) -> AuthenticatedKey | None:
    """Return the same key with the revision of its payments, read by the same statement. Citus cannot run it."""
    return read_key(key_and_revision_statement(), digest, guard=key_guard(DataOfKey(digest, "revisions")))


def key_guard(timeouts: Hashable, *, probe: Callable[[], object] | None = None) -> Guard:
    """Return the guard of a statement that reads a key; `timeouts` names the data that may make it slow.

    With a replica, the servers have circuit breakers for outages.
    """
    return Guard(process.data_breakers, outages=None if has_replica() else KEYS, timeouts=timeouts, probe=probe)


def read_key(statement: Statement, digest: str, *, guard: Guard) -> AuthenticatedKey | None:
    values = {"digest": digest}
    with guard:
        rows, server = process.run_with_failover(partial(statement.rows, values))
        if not rows and server is process.replica:
            rows, server = statement.rows(values), process.primary  # only the primary can prove that no key exists
    if not rows:
        return None
    key = AuthenticatedKey.of(digest, rows[0])
    return key if server is process.primary else key._replace(revision=None)


@lru_cache
def key_statement() -> Statement:
    return Statement(compile_queryset(active_key().values_list(*KEY_COLUMNS)))


@lru_cache
def key_and_revision_statement() -> Statement:
    states = AccessState.objects.filter(organization_id=OuterRef("organization_id"), mode=OuterRef("mode"))
    revision = Cast(Subquery(states.values("revision")), TextField())
    return Statement(compile_queryset(active_key().values_list(*KEY_COLUMNS, revision)))


def active_key() -> ApiKeyQuerySet:
    return ApiKey.objects.active(now=Now()).filter(digest=Placeholder("digest"))


def record_use(key: AuthenticatedKey) -> None:
    """Write that the key was used now, unless the database is busy. A request never waits or fails because of it."""
    now = datetime.now(UTC)
    if now < process.last_use_paused_until.get(key.id, now) or process.primary.breaker.is_open:
        return
    is_due = Q(last_used_at=None) | Q(last_used_at__lte=now - timedelta(seconds=USE_INTERVAL_SECONDS))
    unlocked = ApiKey.objects.select_for_update(skip_locked=True).filter(is_due, pk=key.id)
    try:
        with transaction_without_waiting():
            ApiKey.objects.filter(pk=key.id, pk__in=unlocked.values("pk")).update(last_used_at=now)
    except Error as error:
        process.last_use_paused_until[key.id] = now + PAUSE_AFTER_FAILURE
        logger.warning("The last use of API key %s was not written: %s", key.id, error)
