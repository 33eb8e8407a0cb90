"""The rate limit: how many requests a key may send."""

from math import ceil
from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from payments.access.keys import AuthenticatedKey
from payments.conf import conf
from payments.runtime.process import process
from payments.runtime.rate_limits import RateLimit


def is_over_limit(digest: str) -> bool:
    """Return whether this process has refused a request with this key in the current window."""
    return process.rate_limits.is_exceeded(event_name(digest))


def event_name(digest: str) -> str:
    return f"key {digest}"


class KeyThrottle(BaseThrottle):
    """Counts the requests of a key, and reports the remaining ones in the `RateLimit` headers of each response.

    The headers follow draft-ietf-httpapi-ratelimit-headers.
    """

    headers: dict[str, str] = {}
    wait_seconds = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        key = request.auth
        if not isinstance(key, AuthenticatedKey):  # for OPTIONS, it is what the project's UNAUTHENTICATED_TOKEN returns
            return True
        limit = RateLimit(*(conf.RATE_LIMIT or ()))
        usage = process.rate_limits.count(event_name(key.digest), limit)
        self.wait_seconds = usage.reset_seconds
        self.headers = {
            "RateLimit-Policy": f'"key";q={limit.events_max};w={limit.seconds}',
            "RateLimit": f'"key";r={max(0, usage.remaining)};t={ceil(usage.reset_seconds)}',
        }
        return usage.remaining >= 0

    def wait(self) -> float:
        return self.wait_seconds
