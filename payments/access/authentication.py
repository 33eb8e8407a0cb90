"""Authentication by API key: `Authorization: Bearer <API_KEY>` (RFC 6750)."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from payments import api_keys
from payments.access.last_use import record_use
from payments.access.throttling import count_invalid_key
from payments.database.statements import Placeholder, Statement
from payments.expressions import SecondsText
from payments.models import Access, ApiKey
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, has_replica, run_with_failover

CHALLENGE = 'Bearer realm="payments"'
ANONYMOUS = AnonymousUser()


class AuthenticatedKey(NamedTuple):
    """The API key of a request."""

    id: int
    access: Access
    last_used_at: str | None  # seconds since 1970
    revision: int | None = None  # of the organization's payments on the primary; read only if there is a replica


class BearerAuthentication(BaseAuthentication):
    """Sets `request.auth` to the client's key. The user stays anonymous: a key is not a login.

    Only failures count towards BAD_KEY_LIMIT, so a valid key is never blocked.
    """

    def authenticate(self, request: Request) -> tuple[AnonymousUser, AuthenticatedKey] | None:
        scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        return authenticate_key(credentials.strip(), request)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


def authenticate_key(text: str, request: Request) -> tuple[AnonymousUser, AuthenticatedKey]:
    """Return the anonymous user and the key with this text. Record that the key was used.

    A text with a wrong checksum causes no query.

    :raises AuthenticationFailed: there is no usable key with this text
    :raises Throttled: too many invalid keys came from the client's address
    """
    now = datetime.now(UTC)
    key = find_key(text, now=now) if api_keys.is_key(text) else None
    if key is None:
        if wait := count_invalid_key(request):
            raise Throttled(wait)
        raise AuthenticationFailed("This API key is invalid.")
    record_use(key, now=now)
    return ANONYMOUS, key


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
