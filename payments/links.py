"""The public address of everything that a link names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.urls import reverse
from rest_framework.request import Request

BASES_MAX = 64
HOST_LENGTH_MAX = 253 + len(":65535")  # of a name in DNS (RFC 1035), and a port


@dataclass(frozen=True)
class Addresses:
    """Absolute addresses below one base, such as `https://pay.example`."""

    base: str
    script_name: str = ""  # of the site, where it is mounted below another

    @classmethod
    def of(cls, request: HttpRequest | Request) -> Addresses:
        """Return those for the answer to `request`: PUBLIC_BASE_URL's, else those of the host it came to.

        :raises DisallowedHost: where that host is not ours
        """
        host = request.get_host()
        if len(host) > HOST_LENGTH_MAX:  # Django takes any number for a port, and every link would repeat it
            raise DisallowedHost(f"A host of {len(host)} characters.")
        return addresses(settings.PUBLIC_BASE_URL or f"{request.scheme}://{host}", request.META.get("SCRIPT_NAME", ""))

    @classmethod
    def of_refusal(cls, request: HttpRequest | Request) -> Addresses:
        """Return the same for a refusal, which carries its links all the same: relative ones to a host not ours."""
        try:
            return cls.of(request)
        except DisallowedHost:
            return addresses(settings.PUBLIC_BASE_URL, request.META.get("SCRIPT_NAME", ""))

    def page(self, *, limit: int, start: str | None, selected: str = "") -> str:
        """Return a page's address; `selected` is what is asked for beside, as a query string goes on."""
        begun = "" if start is None else f"&from={start}"
        return f"{self.list}?limit={limit}{begun}{selected}"

    def payment(self, payment_id: str) -> str:
        return f"{self.list}/{payment_id}"

    def dashboard(self, payment_id: str) -> str:
        return f"{self.changelist}{admin_quoted(payment_id)}/change/"

    @cached_property
    def named(self) -> tuple[str, ...]:
        """Return all that the links of an answer are made of, beside what it shows."""
        return self.list, self.changelist, self.documentation

    @cached_property
    def root(self) -> str:
        return f"{self.base}{reverse('root')}"

    @cached_property
    def list(self) -> str:
        return f"{self.base}{reverse('payment-list')}"

    @cached_property
    def changelist(self) -> str:
        return f"{self.base}{reverse('admin:payments_payment_changelist')}"

    @cached_property
    def documentation(self) -> str:
        return f"{self.base}{reverse('documentation')}"


def admin_quoted(payment_id: str) -> str:
    """Return the id as the admin's addresses have it: an underscore, of which there is one, is written _5F."""
    return payment_id.replace("_", "_5F")


addresses = lru_cache(BASES_MAX)(Addresses)
