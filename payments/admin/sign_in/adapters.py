"""django-allauth's adapters: what it does after the OpenID provider has confirmed an account."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from io import BytesIO
from time import monotonic
from typing import TYPE_CHECKING, Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.db import IntegrityError, transaction
from requests import Response, Session
from urllib3.exceptions import HTTPError

from payments.admin.login import SINGLE_SIGN_ON
from payments.admin.sign_in.access import apply_access, claimed_access
from payments.admin.sign_in.claims import ProviderError, Refused, check_claims, check_user, find_or_create_user
from payments.admin.sign_in.pages import refusal
from payments.runtime.process import process

if TYPE_CHECKING:
    from allauth.socialaccount.models import SocialLogin
    from django.contrib.auth.models import User
    from django.http import HttpRequest

# For a connection to the provider, and for each part of an answer.
REQUEST_SECONDS_MAX = 5

# Of an answer.
ANSWER_SECONDS_MAX = 10
ANSWER_BYTES_MAX = 2**18
PART_BYTES = 2**14

# Codes of OAuth (RFC 6749, 5.2, and RFC 6750, 3.1).
ERROR_CODE = re.compile(
    rb'"error"\s*:\s*"(invalid_(?:request|client|grant|scope|token)|un(?:authorized_client|supported_grant_type))"'
)

logger = logging.getLogger(__name__)


class ProviderSession(Session):
    """Requests to the OpenID provider, with limits. Their time does not count as time of the database.

    A request contains the secret of the client, so the session follows no redirects.
    """

    def request(self, *args: Any, **options: Any) -> Response:
        """Return the answer.

        :raises ProviderError: for an answer that is an error, is too long or takes too long
        """
        options = {"timeout": REQUEST_SECONDS_MAX, **options, "allow_redirects": False, "stream": True}
        with process.deadline.paused():
            response = super().request(*args, **options)
            body = read_body(response)
        if response.status_code != HTTPStatus.OK:
            code = ERROR_CODE.search(body)
            raise ProviderError(
                f"It responded with status {response.status_code} ({code[1].decode() if code else '-'})."
            )
        response.raw = BytesIO(body)
        return response


def read_body(response: Response) -> bytes:
    ends_at = monotonic() + ANSWER_SECONDS_MAX
    body = b""
    try:
        while part := response.raw.read1(PART_BYTES, decode_content=True):
            body += part
            if len(body) > ANSWER_BYTES_MAX or monotonic() > ends_at:
                raise ProviderError("An answer is too long, or takes too long.")
    except HTTPError as error:
        raise ProviderError("An answer is incomplete.") from error
    return body


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Logs users in, without further steps, messages or sign-up."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_login_stages(self) -> list[str]:
        return []

    def login(self, request: HttpRequest, user: User) -> None:
        user.backend = SINGLE_SIGN_ON
        super().login(request, user)

    def add_message(self, *_args: Any, **_options: Any) -> None:
        """Send no message: the page shows the user's name."""


class SingleSignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Allows accounts by the settings, and links them to users."""

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Any:
        """Return the provider of the settings. There is no other one, also not in the database."""
        from payments.admin.sign_in.single_sign_on import staff_provider  # noqa: PLC0415  needs the models

        return staff_provider(request)

    def get_requests_session(self) -> ProviderSession:
        return ProviderSession()

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> User:
        """Return the user without values: `find_or_create_user` creates users, from validated claims."""
        user: User = sociallogin.user
        return user

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Let allauth continue with a user, or respond with a refusal."""
        claims = sociallogin.account.extra_data
        try:
            email, access = check_claims(claims), claimed_access(claims)
            if not sociallogin.is_existing:
                self.link(request, sociallogin, claims, email=email)
            check_user(sociallogin.user)
            apply_access(sociallogin.user, access)
        except Refused as error:
            logger.warning("Refused a sign-in of the account %s: %s", sociallogin.account.uid, error)
            raise ImmediateHttpResponse(refusal(request, str(error))) from None

    def link(self, request: HttpRequest, sociallogin: SocialLogin, claims: dict[str, Any], *, email: str) -> None:
        """Link the account to a user, at the first sign-in.

        An address can pass to another person. So a user who is linked to one account cannot be linked to another one.
        """
        try:
            with transaction.atomic():
                user = find_or_create_user(claims, email=email)
                user = type(user).objects.select_for_update().get(pk=user.pk)  # so that one account gets the user
                check_user(user)
                from allauth.socialaccount.models import SocialAccount  # noqa: PLC0415  the adapter is imported earlier

                if SocialAccount.objects.filter(user=user, provider=sociallogin.account.provider).exists():
                    raise Refused("The user with your e-mail address belongs to another account of the provider.")
                sociallogin.connect(request, user)
        except IntegrityError:  # the same account signed in at the same time
            raise Refused("The sign-in was interrupted. Try again.") from None

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False

    def on_authentication_error(
        self, request: HttpRequest, *_args: Any, exception: Exception | None = None, **_options: Any
    ) -> None:
        """Respond with a page that explains the error. Without an exception, the request is not the expected one."""
        if exception is None:
            message = "The sign-in was cancelled, or it took too long. Try again."
            raise ImmediateHttpResponse(refusal(request, message))
        raise exception  # the view responds


def unlink(user: User) -> int:
    """Remove the links of a user to accounts at OpenID providers. Return their number."""
    from allauth.socialaccount.models import SocialAccount  # noqa: PLC0415  the adapters are imported earlier

    deleted, _ = SocialAccount.objects.filter(user=user).delete()
    return int(deleted)
