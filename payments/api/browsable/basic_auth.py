"""Basic authentication for browsers, which cannot send a Bearer header: the user name is the API key.

A login form with a session would turn a cookie into a credential for the API.
"""

import binascii
from base64 import b64decode

from django.contrib.auth.models import AnonymousUser
from rest_framework.request import Request

from payments.access.authentication import BearerAuthentication
from payments.access.clients import client_with_key
from payments.access.keys import AuthenticatedKey
from payments.hal import HTML

CHALLENGE = 'Basic realm="payments", charset="UTF-8"'


class BrowserAuthentication(BearerAuthentication):
    """Accepts Basic credentials (RFC 7617) for pages. For programs, responses are the same as in production."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, AuthenticatedKey] | None:
        scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() == "basic" and is_page(request):
            return self.authenticate_client(client_with_key(user_name(credentials)))
        return super().authenticate(request)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE if is_page(request) else super().authenticate_header(request)


def is_page(request: Request) -> bool:
    return bool(request.accepted_media_type == HTML)


def user_name(credentials: str) -> str:
    """Return the user name; an empty text if there is a password or the credentials are malformed."""
    try:
        text = b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    name, _, password = text.partition(":")
    return "" if password else name
