"""The public URLs of the API, the admin and the documentation."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.core.signals import setting_changed
from django.http import HttpRequest
from django.urls import NoReverseMatch, get_script_prefix, reverse, set_script_prefix
from django.utils.encoding import escape_uri_path
from rest_framework.request import Request

from payments.conf import conf
from payments.hal import HAL, Link

# How many base URLs are cached. Without PUBLIC_BASE_URL each host of ALLOWED_HOSTS has its own.
CACHED_MAX = 64

# The variables of a WSGI request that its host, scheme and path prefix depend on, without those of a trusted proxy.
SCHEME = "wsgi.url_scheme"  # each request of WSGI has it, and none of ASGI
DIRECT = ("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "SCRIPT_NAME", SCHEME)
Names: TypeAlias = tuple[str, ...]

# The anchors of sections of the reference that `documentation` links lead to.
ReferenceSection: TypeAlias = Literal[
    "list-payments", "list-changes", "get-totals", "import-payments", "payment-record", "errors"
]

HOST_LENGTH_MAX = 253 + len(":65535")  # a DNS name (RFC 1035) and a port


@dataclass(frozen=True, eq=False)
class Links:
    """Absolute URLs below one base, such as `https://pay.example`."""

    base: str
    script_name: str = ""  # of the site, if it is mounted below another one: part of the cache's key

    @classmethod
    def of(cls, request: HttpRequest | Request) -> Links:
        """Return the links for the response to `request`, below PUBLIC_BASE_URL or below the request's host.

        :raises DisallowedHost: the host is not in ALLOWED_HOSTS
        """
        names = names_of_variables()
        variables = request.META
        if SCHEME not in variables:  # ASGI has none of the variables of WSGI
            variables = {**variables, SCHEME: request.scheme}
        return links_for(names, tuple(map(variables.get, names)))

    @classmethod
    def of_error(cls, request: HttpRequest | Request) -> Links:
        """Return the links for an error response; relative ones if the request's host is not allowed."""
        try:
            return cls.of(request)
        except DisallowedHost:
            return cached_links(conf.PUBLIC_BASE_URL, request.META.get("SCRIPT_NAME", ""))

    def page(self, path: str, *, limit: int, start: str | None, query: str = "") -> Link:
        """Return the link to a page at a path; `query` has the filters and the order, and starts with `&`."""
        from_ = "" if start is None else f"&from={start}"
        return Link(f"{self.base}{cached_escape(path)}?limit={limit}{from_}{query}", HAL)

    def payment(self, payment_id: str) -> str:
        return f"{self.list}/{payment_id}"

    def dashboard(self, payment_id: str) -> str | None:
        return self.changelist and f"{self.changelist}{payment_id}/change/"

    @cached_property
    def parts(self) -> tuple[str | None, ...]:
        """Return the URLs that all links of a response are made of."""
        return self.list, self.changelist, self.reference

    @cached_property
    def list(self) -> str:
        return self.url("payments:payment-list")

    @cached_property
    def changelist(self) -> str | None:
        """Return the URL of the admin's list of payments; None if the project has no admin for payments."""
        try:
            return self.url("admin:payments_payment_changelist")
        except NoReverseMatch:
            return None

    @cached_property
    def reference(self) -> str:
        return self.url("payments:documentation-reference")

    def section(self, section: ReferenceSection) -> str:
        return f"{self.reference}#{section}"

    def url(self, view: str) -> str:
        """Return the URL of a view without arguments. Django's `reverse` reads the prefix from the thread."""
        prefix = get_script_prefix()
        set_script_prefix(self.script_name)
        try:
            return f"{self.base}{reverse(view)}"
        finally:
            set_script_prefix(prefix)


@lru_cache
def names_of_variables() -> Names:
    """Return the names of the variables that links depend on.

    Django trusts the headers of a proxy only if the project's settings name them. Without a proxy, clients could send
    any values, which would fill the cache.
    """
    proxied = {
        "HTTP_X_FORWARDED_HOST": settings.USE_X_FORWARDED_HOST,
        "HTTP_X_FORWARDED_PORT": settings.USE_X_FORWARDED_PORT,
    }
    scheme, *_ = settings.SECURE_PROXY_SSL_HEADER or (None,)
    return (*DIRECT, *(name for name, is_trusted in proxied.items() if is_trusted), *filter(None, [scheme]))


cached_links = lru_cache(CACHED_MAX)(Links)
cached_escape = lru_cache(CACHED_MAX)(escape_uri_path)


@lru_cache(CACHED_MAX)
def links_for(names: Names, values: tuple[str | None, ...]) -> Links:
    """Return the links for requests with these variables. Django's check of the host takes longer than many a response.

    :raises DisallowedHost: the host is not in ALLOWED_HOSTS
    """
    variables = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    script_name = variables.pop("SCRIPT_NAME", "")  # decoded already, unlike WSGIRequest expects
    request = WSGIRequest({"REQUEST_METHOD": "GET", "wsgi.input": io.BytesIO(), **variables})
    host = request.get_host()
    if len(host) > HOST_LENGTH_MAX:  # Django accepts a port of any length, and each link would repeat it
        raise DisallowedHost(f"A host of {len(host)} characters.")
    return cached_links(conf.PUBLIC_BASE_URL or f"{request.scheme}://{host}", script_name)


def forget_links(**_change: Any) -> None:
    links_for.cache_clear()
    names_of_variables.cache_clear()


setting_changed.connect(forget_links)
