"""Pages of the sign-in, in the design of the admin."""

from http import HTTPStatus
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme

NEXT_CHARACTERS_MAX = 2000  # the session of a login stores the address


def page(request: HttpRequest, name: str, *, title: str, status: int = HTTPStatus.OK, **context: Any) -> HttpResponse:
    """Return a page that is never cached."""
    values = {**admin.site.each_context(request), "title": title, **context}
    response = render(request, f"admin/sign_in/{name}.html", values, status=status)
    add_never_cache_headers(response)
    return response


def refusal(request: HttpRequest, message: str, *, status: int = HTTPStatus.FORBIDDEN) -> HttpResponse:
    return page(request, "refusal", title="Sign-in failed", status=status, message=message)


def safe_next(request: HttpRequest, address: str | None) -> str:
    """Return an address of this site to continue at; the start page for any other address."""
    hosts = {request.get_host()}
    is_safe = url_has_allowed_host_and_scheme(address, allowed_hosts=hosts, require_https=request.is_secure())
    return address if address and is_safe and len(address) <= NEXT_CHARACTERS_MAX else reverse("admin:index")
