"""Header fields that the service sets in each response.

Their values are known to be valid, so Django's check of each name and value is skipped. It uses a private attribute of
Django: `ResponseHeaders._store`.
"""

from collections.abc import Mapping

from django.http.response import HttpResponseBase


def set_fields(response: HttpResponseBase, fields: Mapping[str, str]) -> None:
    """Set fields. Each value is Latin-1 text without line breaks, as the fields of a request are."""
    store = response.headers._store  # noqa: SLF001
    for name, value in fields.items():
        store[name.lower()] = (name, value)


def list_fields(response: HttpResponseBase) -> list[tuple[str, str]]:
    """Return the names and values of all fields. Django's `items()` looks up each name again."""
    return list(response.headers._store.values())  # noqa: SLF001
