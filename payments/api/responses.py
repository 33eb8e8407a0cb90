"""Responses with valid header fields: Django's checks of each name and value are skipped.

Django's own initialization of a response takes longer than the rest of a 304. This module uses private attributes of
Django: `ResponseHeaders._store`, and those that `HttpResponse` sets.
"""

from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase, ResponseHeaders

# The attributes of a new response that `ApiResponse` does not set.
INITIAL: dict[str, Any] = {
    name: value
    for name, value in vars(HttpResponse(content_type="")).items()
    if value is None or isinstance(value, bool)
}


class ApiResponse(HttpResponse):
    """A response with these header fields. Each value is Latin-1 text without line breaks."""

    def __init__(self, status: int, fields: Mapping[str, str], body: bytes = b"") -> None:
        vars(self).update(INITIAL)
        self.status_code = status
        self.headers = ResponseHeaders({})
        self.cookies = SimpleCookie()
        self._resource_closers = []  # type: ignore[var-annotated]
        self._container = [body]
        set_fields(self, fields)


def set_fields(response: HttpResponseBase, fields: Mapping[str, str]) -> None:
    """Set fields. Each value is Latin-1 text without line breaks, as the fields of a request are."""
    store = response.headers._store  # noqa: SLF001
    for name, value in fields.items():
        store[name.lower()] = (name, value)


def list_fields(response: HttpResponseBase) -> list[tuple[str, str]]:
    """Return the names and values of all fields. Django's `items()` looks up each name again."""
    return list(response.headers._store.values())  # noqa: SLF001
