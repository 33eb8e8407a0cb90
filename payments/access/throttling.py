"""How often a key may ask, where RATE_LIMIT says so, and how often a bad one may be shown."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from rest_framework.throttling import BaseThrottle

from payments.access.clients import client_address
from payments.runtime.process import process
from payments.runtime.rate_limits import RateLimit

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from payments.access.authentication import AuthenticatedKey


class KeyThrottle(BaseThrottle):
    """Counts a key's requests, and says with every answer how many are left (draft-ietf-httpapi-ratelimit-headers)."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        if request.auth is None:
            return True
        limit: RateLimit = settings.RATE_LIMIT
        self.usage = process.rate_limits.count(f"key {cast('AuthenticatedKey', request.auth).id}", limit)
        view.headers = {
            **view.headers,
            "RateLimit-Policy": f'"key";q={limit.events_max};w={limit.seconds}',
            "RateLimit": f'"key";r={max(0, self.usage.remaining)};t={ceil(self.usage.reset_seconds)}',
        }
        return self.usage.remaining >= 0

    def wait(self) -> float:
        return self.usage.reset_seconds


def count_bad_key(request: Any) -> float:
    """Count a bad key that was shown; return for how many seconds its sender is to be refused, 0 where it is not."""
    if settings.BAD_KEY_LIMIT is None:
        return 0.0
    return process.rate_limits.count(f"bad keys {client_address(request.META)}", settings.BAD_KEY_LIMIT).wait_seconds
