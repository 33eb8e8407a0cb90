"""Authentication by API key: `Authorization: Bearer <API_KEY>` (RFC 6750), and the permission that requires it."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, TypeAlias

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission

from payments.access.keys import AuthenticatedKey, find_key, is_use_due, record_use
from payments.models import identifiers

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

CHALLENGE = 'Bearer realm="payments"'
ANONYMOUS = AnonymousUser()

# Returns the active key with a digest.
FindKey: TypeAlias = Callable[[str], AuthenticatedKey | None]


class BearerAuthentication(BaseAuthentication):
    """Sets `request.auth` to the client's key. The user stays anonymous: a key is not a login."""

    def __init__(self, find_key: FindKey = find_key) -> None:
        self.find_key = find_key

    def authenticate(self, request: Request) -> tuple[AnonymousUser, AuthenticatedKey] | None:
        scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self.authenticate_key(credentials.strip())

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE

    def authenticate_key(self, text: str) -> tuple[AnonymousUser, AuthenticatedKey]:
        """Return the anonymous user and the key with this text. Record that the key was used.

        A text without the form of a key causes no query.

        :raises AuthenticationFailed: there is no usable key with this text
        """
        key = self.find_key(identifiers.digest(text)) if identifiers.is_key(text) else None
        if key is None:
            raise AuthenticationFailed("This API key is invalid.")
        if is_use_due(key, now=time()):
            record_use(key)
        return ANONYMOUS, key


class HasKey(BasePermission):
    """Requires a key, except for OPTIONS. Browsers send OPTIONS without a key, and the response contains no data."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return request.method == "OPTIONS" or isinstance(request.auth, AuthenticatedKey)
