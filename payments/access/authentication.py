"""Authentication by API key: `Authorization: Bearer <API_KEY>` (RFC 6750)."""

from datetime import UTC, datetime

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from payments.access.keys import AuthenticatedKey, QueriesFor, find_key, no_queries
from payments.access.last_use import record_use

CHALLENGE = 'Bearer realm="payments"'
ANONYMOUS = AnonymousUser()


class BearerAuthentication(BaseAuthentication):
    """Sets `request.auth` to the client's key. The user stays anonymous: a key is not a login.

    `queries_for` returns the queries of the view. If possible, they run in the same round trip as the key's.
    """

    def __init__(self, queries_for: QueriesFor = no_queries) -> None:
        self.queries_for = queries_for

    def authenticate(self, request: Request) -> tuple[AnonymousUser, AuthenticatedKey] | None:
        scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self.authenticate_key(credentials.strip())

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE

    def authenticate_key(self, text: str) -> tuple[AnonymousUser, AuthenticatedKey]:
        """Return the anonymous user and the key with this text. Record that the key was used.

        :raises AuthenticationFailed: there is no usable key with this text
        """
        now = datetime.now(UTC)
        key = find_key(text, now=now, queries_for=self.queries_for)
        if key is None:
            raise AuthenticationFailed("This API key is invalid.")
        record_use(key, now=now)
        return ANONYMOUS, key
