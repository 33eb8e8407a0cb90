"""A way in for a browser, which sends no header of its user's own: the key is the user name that it asks for."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING

from payments.access.authentication import BearerAuthentication, authenticated
from payments.hal import HTML

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser
    from rest_framework.request import Request

    from payments.access.authentication import AuthenticatedKey

CHALLENGE = 'Basic realm="payments", charset="UTF-8"'


class BrowserAuthentication(BearerAuthentication):
    """Takes `Basic` (RFC 7617) from who is shown pages; what a program is answered is the same as in production."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, AuthenticatedKey] | None:
        scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() == "basic" and is_shown_pages(request):
            return authenticated(user_name(credentials), request)
        return super().authenticate(request)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE if is_shown_pages(request) else super().authenticate_header(request)


def is_shown_pages(request: Request) -> bool:
    return bool(request.accepted_media_type == HTML)


def user_name(credentials: str) -> str:
    """Return the user name of an empty password; nothing where there is a password, or no such form."""
    try:
        text = b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    name, _, password = text.partition(":")
    return "" if password else name
