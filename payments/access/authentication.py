"""Authentication by API key: `Authorization: Bearer <API_KEY>` (RFC 6750), and the permission that requires it."""

from collections.abc import Callable
from time import time
from typing import Any

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from payments.access.clients import Client, bearer_token, client_of
from payments.access.keys import USE_INTERVAL_SECONDS, AuthenticatedKey, find_key, record_use

CHALLENGE = 'Bearer realm="payments"'
ANONYMOUS = AnonymousUser()


class InsufficientScope(PermissionDenied):
    """The key is valid, but for something else (RFC 6750, section 3.1)."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"This needs an API key with the scope {scope}.")
        self.auth_header = f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'


class BearerAuthentication(BaseAuthentication):
    """Sets `request.auth` to the client's key. The user stays anonymous: a key is not a login."""

    def __init__(self, find_key: Callable[[str], AuthenticatedKey | None] = find_key) -> None:
        self.find_key = find_key

    def authenticate(self, request: Request) -> tuple[AnonymousUser, AuthenticatedKey] | None:
        client = client_of(request.META)
        if client.key_digest is None and bearer_token(request.META) is None:
            return None
        return self.authenticate_client(client)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE

    def authenticate_client(self, client: Client | None) -> tuple[AnonymousUser, AuthenticatedKey]:
        """Return the anonymous user and the client's key. Record that the key was used.

        A client without a text in the form of a key causes no query.

        :raises AuthenticationFailed: the client has no usable key
        """
        digest = client and client.key_digest
        key = self.find_key(digest) if digest else None
        if key is None:
            raise AuthenticationFailed("This API key is invalid.")
        if key.used_at is None or time() - key.used_at >= USE_INTERVAL_SECONDS:
            record_use(key)
        return ANONYMOUS, key


class HasKey(BasePermission):
    """Requires a key, except for OPTIONS. Browsers send OPTIONS without a key, and the response contains no data."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return request.method == "OPTIONS" or isinstance(request.auth, AuthenticatedKey)
