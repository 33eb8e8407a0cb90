"""The public address of everything that a link names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.urls import reverse
from rest_framework.request import Request


@dataclass(frozen=True)
class Addresses:
    """Absolute addresses below one base, such as `https://pay.example`."""

    base: str

    @classmethod
    def of(cls, request: HttpRequest | Request) -> Addresses:
        """Return those for the answer to `request`: PUBLIC_BASE_URL's, else those of the host it came to.

        Where that host is not ours, addresses are relative: a refusal should still carry its links.
        """
        if settings.PUBLIC_BASE_URL:
            return cls(settings.PUBLIC_BASE_URL)
        try:
            return cls(f"{request.scheme}://{request.get_host()}")
        except DisallowedHost:
            return cls("")

    def page(self, *, limit: int, start: str | None) -> str:
        position = {} if start is None else {"from": start}
        return f"{self.list}?{urlencode({'limit': limit, **position})}"

    def payment(self, payment_id: str) -> str:
        return f"{self.list}/{payment_id}"

    def dashboard(self, payment_id: str) -> str:
        # The admin writes an underscore as _5F; a payment's id has one, after `pt`.
        return f"{self.changelist}{payment_id.replace('_', '_5F')}/change/"

    @cached_property
    def list(self) -> str:
        return f"{self.base}{reverse('payment-list')}"

    @cached_property
    def changelist(self) -> str:
        return f"{self.base}{reverse('admin:payments_payment_changelist')}"

    @cached_property
    def documentation(self) -> str:
        return f"{self.base}{reverse('documentation')}"
