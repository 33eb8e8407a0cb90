"""Looks up the API key of every request."""

import hashlib
from typing import Any

from django.db.models import Q
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from benchmarks.peers.stock_drf.models import ApiKey


class KeyAuthentication(BaseAuthentication):
    """Puts the key on `request.auth`."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey]:
        _, _, key = get_authorization_header(request).partition(b" ")
        usable = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
        try:
            api_key = ApiKey.objects.get(usable, digest=hashlib.sha256(key).hexdigest(), revoked_at=None)
        except ApiKey.DoesNotExist:
            raise AuthenticationFailed from None
        return None, api_key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"
