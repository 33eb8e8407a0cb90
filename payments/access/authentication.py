"""The Authorization header, as RFC 6750 has it: `Bearer <API_KEY>`."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from payments import api_keys
from payments.access.last_use import note_use
from payments.access.throttling import count_bad_key
from payments.database.statements import Slot, Statement
from payments.models import Access, ApiKey
from payments.rows import SecondsText
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, has_replica, run_with_failover

CHALLENGE = 'Bearer realm="payments"'
NOBODY = AnonymousUser()


class AuthenticatedKey(NamedTuple):
    """The API key of a request."""

    id: int
    access: Access
    last_used_at: str | None  # seconds since 1970
    revision: int | None = None  # of the organization's payments on the primary; read only if there is a replica


def authenticated(text: str, request: Request) -> tuple[AnonymousUser, AuthenticatedKey]:
    """Return who shows the key of that text, and the key. Only bad ones are counted.

    A text that cannot be a key is refused without a query; any other costs one.

    :raises AuthenticationFailed: where it is no usable key
    :raises Throttled: where too many that are none came from the same address
    """
    now = datetime.now(UTC)
    key = find_key(text, now=now) if api_keys.is_key(text) else None
    if key is None:
        if wait := count_bad_key(request):
            raise Throttled(wait)
        raise AuthenticationFailed("This API key is not valid.")
    note_use(key, now=now)
    return NOBODY, key


def find_key(text: str, *, now: datetime) -> AuthenticatedKey | None:
    """Return the usable key of that text; `now` is in UTC. One query.

    It is the primary that is asked, so what was made or revoked a moment ago is known; a replica, where that is away.
    """
    values = {"digest": api_keys.digest(text), "now": str(now.replace(tzinfo=None))}
    if not has_replica():
        rows = key_statement().rows(**values)
        return authenticated_key(*rows[0]) if rows else None

    def ask(using: str) -> list[Any]:
        return key_statement("organization__revision").rows(using, **values)

    rows, server = run_with_failover(ask, primary=process.primary, replica=process.replica)
    if server is not process.primary:  # which alone can tell that there is no such key, and what the revision is
        rows = [(*row[:-1], None) for row in rows] or ask(PRIMARY)
    return authenticated_key(*rows[0]) if rows else None


def authenticated_key(
    key_id: int, organization_id: int, mode: str, last_used_at: str | None, revision: int | None = None
) -> AuthenticatedKey:
    return AuthenticatedKey(key_id, Access(organization_id, mode), last_used_at, revision)


@lru_cache
def key_statement(*more: str) -> Statement[Any]:
    shown = ApiKey.objects.usable(now=Slot("now")).filter(digest=Slot("digest"))
    return Statement(shown.values_list("id", "organization_id", "mode", SecondsText("last_used_at"), *more))


class BearerAuthentication(BaseAuthentication):
    """Puts the key that the client showed on `request.auth`; the user stays anonymous: a key is nobody's login.

    Only bad keys are counted, so that who shows too many of them keeps nobody out who has a good one.
    """

    def authenticate(self, request: Request) -> tuple[AnonymousUser, AuthenticatedKey] | None:
        scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        return authenticated(credentials.strip(), request)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE
