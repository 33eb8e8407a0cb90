"""The Authorization header, as RFC 6750 has it: `Bearer <API_KEY>`."""

from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from payments import keys
from payments.last_use import note_use
from payments.models import ApiKey

CHALLENGE = 'Bearer realm="payments"'


class BearerAuthentication(BaseAuthentication):
    """Puts the key that the client showed on `request.auth`; the user stays anonymous: a key is nobody's login.

    A text that cannot be a key is refused without a query; any other costs one.
    """

    def authenticate(self, request: Request) -> tuple[AnonymousUser, ApiKey] | None:
        scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        now = timezone.now()
        text = credentials.strip()
        key = ApiKey.objects.usable(now=now).filter(digest=keys.digest(text)).first() if keys.is_key(text) else None
        if key is None:
            raise AuthenticationFailed("This API key is not valid.")
        note_use(key, now=now)
        return AnonymousUser(), key

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE
