"""What the OpenID provider says about an account, and which user the account belongs to.

Nothing else of the provider's answers is used, stored or logged.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac
from jwt import PyJWTError, get_unverified_header
from jwt.algorithms import get_default_algorithms

from payments.conf import conf

EMAIL_CHARACTERS_MAX = 254
VALUE_CHARACTERS_MAX = 40  # of a role or an organization
NAME_CHARACTERS_MAX = 150  # as in Django's model of users
SUBJECT_CHARACTERS_MAX = 191  # as in django-allauth's model of accounts

# The provider issues an ID token when the service asks for it. Clocks differ.
ID_TOKEN_SECONDS_MAX = 600
CLOCK_SECONDS_MAX = 60

LACKS_ROLE = "Your account may not sign in here: it lacks a role or group."
NAME_TAKEN = "A user with your e-mail address as user name exists already."

logger = logging.getLogger(__name__)


class ProviderError(Exception):
    """An answer of the provider is not OpenID Connect. The message, for the log, has no text of the answer."""


def nonce_of(state: str) -> str:
    """Return the nonce that binds an ID token to the sign-in with this state, which works once, in one session."""
    return salted_hmac("payments.admin.sign_in.nonce", state, algorithm="sha256").hexdigest()


def check_algorithm(id_token: Any) -> None:
    """Refuse an ID token without a signature. The signature is not verified: the token came over TLS."""
    try:
        algorithm = get_unverified_header(id_token).get("alg")
    except PyJWTError:
        raise ProviderError("The ID token is missing or malformed.") from None
    if algorithm not in get_default_algorithms().keys() - {"none"}:
        raise ProviderError("The ID token has no signature, or one of an unknown algorithm.")


def check_id_token(claims: Mapping[str, Any], *, nonce: str) -> None:
    """Check what django-allauth does not (OpenID Connect Core, 3.1.3.7). The issuer and an audience are right already.

    :raises ProviderError: if the token is for another client or another sign-in, or if it is not valid now
    """
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    names_party = "azp" in claims or set(audiences) != {conf.OIDC_CLIENT_ID}
    if names_party and claims.get("azp") != conf.OIDC_CLIENT_ID:
        raise ProviderError("The ID token is for another client.")
    if claims.get("nonce") != nonce:
        raise ProviderError("The ID token is for another sign-in.")
    now = time.time()
    issued_at, expires_at = time_of(claims, "iat"), time_of(claims, "exp")
    begins_at = time_of({"nbf": issued_at, **claims}, "nbf")
    is_valid = now - ID_TOKEN_SECONDS_MAX <= issued_at <= now + CLOCK_SECONDS_MAX
    if not (is_valid and begins_at <= now + CLOCK_SECONDS_MAX and now < expires_at):
        raise ProviderError("The ID token has expired, or is not valid yet.")


def time_of(claims: Mapping[str, Any], name: str) -> float:
    """Return a time in seconds since 1970. It can be NaN or infinite."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProviderError(f"The ID token has no valid {name}.")
    return value


def subject_of(id_token: Mapping[str, Any], userinfo: Mapping[str, Any]) -> str:
    """Return the provider's identifier of the account (OpenID Connect Core, 2 and 5.3.2)."""
    subject = id_token.get("sub")
    if not (isinstance(subject, str) and subject.isascii() and is_line(subject, characters_max=SUBJECT_CHARACTERS_MAX)):
        raise ProviderError("The account has no valid identifier.")
    if userinfo.get("sub") != subject:
        raise ProviderError("The user info is about another account.")
    return subject


def used_claims(id_token: Mapping[str, Any], userinfo: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims that are used, with values of their type and length. An invalid value is an empty text."""
    claims = {**id_token, **userinfo}
    documents = (id_token, userinfo)
    email = claims.get("email")
    is_verified = (
        any("email" in document and document.get("email_verified") is True for document in documents)
        and all(document.get("email_verified", True) is True for document in documents)
        and str(id_token.get("email", email)).lower() == str(email).lower()
    )
    required = conf.OIDC_REQUIRED_CLAIM
    return {
        "email": email if is_verified and is_email(email) else "",
        "given_name": name_of(claims, "given_name"),
        "family_name": name_of(claims, "family_name"),
        "has_required_claim": required is None or has_claim(claims, *required),
        "roles": texts_of(claims.get(conf.OIDC_ROLE_CLAIM)),
        "organizations": texts_of(claims.get(conf.OIDC_ORGANIZATIONS_CLAIM)),
    }


def texts_of(claim: Any) -> list[str]:
    """Return the values of a claim, which is a list or one value, as texts. Numbers become texts too."""
    values = claim if isinstance(claim, list) else [claim]
    return [text_of(value) for value in values if value is not None and value != ""]


def text_of(value: Any) -> str:
    """Return a short text of ASCII, or an empty text for any other value."""
    text = str(value) if type(value) in {int, str} else ""
    return text if text.isascii() and is_line(text, characters_max=VALUE_CHARACTERS_MAX) else ""


def is_email(value: Any) -> bool:
    """Return whether a value is an address of the usual form. Quoted addresses can contain anything, also an `@`.

    The database could find another user for other letters than ASCII: it compares some of them as equal.
    """
    if not (isinstance(value, str) and value.isascii() and is_line(value, characters_max=EMAIL_CHARACTERS_MAX)):
        return False
    try:
        validate_email(value)
    except ValidationError:
        return False
    return '"' not in value


def name_of(claims: Mapping[str, Any], claim: str) -> str:
    """Return a name from the claims as one short line, without characters that change the direction of text."""
    name = claims.get(claim)
    if not isinstance(name, str):
        return ""
    return "".join(filter(str.isprintable, name)).strip()[:NAME_CHARACTERS_MAX]


def has_claim(claims: Mapping[str, Any], name: str, value: str) -> bool:
    """Return whether a claim is a text, or a list that contains it."""
    claim = claims.get(name)
    return value in claim if isinstance(claim, list) else claim == value


def is_line(text: str, *, characters_max: int) -> bool:
    return text.isprintable() and 0 < len(text) <= characters_max


class Refused(Exception):
    """The account may not sign in. The message is for its owner."""


def check_claims(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address of an account, from the claims that `used_claims` returns.

    :raises Refused: if the settings do not allow the account, or if its address is not valid and verified
    """
    email: str = claims["email"]
    if not email:
        raise Refused("The provider has no verified e-mail address for your account, or one that is invalid.")
    _, _, domain = email.rpartition("@")
    if domain.lower() not in conf.OIDC_EMAIL_DOMAINS:
        raise Refused("The domain of your e-mail address may not sign in.")
    if not claims["has_required_claim"]:
        raise Refused(LACKS_ROLE)
    return email


def check_user(user: User) -> None:
    if not (user.is_active and user.is_staff):
        raise Refused("Your user is disabled, or may not use this site.")


def find_or_create_user(claims: Mapping[str, Any], *, email: str) -> User:
    """Return the user with the e-mail address of an account. The address must be verified.

    :raises Refused: if there is no such user and none may be created, or if several users have the address
    """
    users = list(User.objects.filter(email__iexact=email)[:2])
    if len(users) > 1:
        raise Refused("Several users have your e-mail address.")
    return users[0] if users else create_user(claims, email=email)


def create_user(claims: Mapping[str, Any], *, email: str) -> User:
    """Create a member of the staff, in the group of new users if no claim has the role."""
    groups = groups_of_new_user(claims)
    names = {"first_name": claims["given_name"], "last_name": claims["family_name"]}
    user = User(username=email, email=email, is_staff=True, **names)
    user.set_unusable_password()
    try:
        user.clean_fields()
    except ValidationError:
        raise Refused("Your e-mail address cannot be a user name. An administrator can create a user for it.") from None
    if User.objects.filter(username__iexact=email).exists():
        raise Refused(NAME_TAKEN)
    try:
        with transaction.atomic():
            user.save()
            user.groups.add(*groups)
    except IntegrityError:
        raise Refused(NAME_TAKEN) from None
    return user


def groups_of_new_user(claims: Mapping[str, Any]) -> list[Group]:
    """Return no group if the claim has the role, otherwise the group of the setting.

    :raises Refused: the claim has no role, or there is no group
    """
    if conf.OIDC_ROLE_CLAIM:
        if not claims["roles"]:
            raise Refused(LACKS_ROLE)
        return []
    if not conf.OIDC_NEW_USER_GROUP:
        raise Refused("No user has your e-mail address.")
    groups = list(Group.objects.filter(name=conf.OIDC_NEW_USER_GROUP))
    if not groups:
        logger.error("The group of OIDC_NEW_USER_GROUP does not exist: new users cannot sign in.")
        raise Refused("New users cannot sign in now.")
    return groups
