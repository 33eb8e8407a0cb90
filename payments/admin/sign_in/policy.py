"""Which user an account at the OpenID provider belongs to."""

import logging
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction

from payments.conf import conf

USER_NAME_MAX = 150

logger = logging.getLogger(__name__)


class Refused(Exception):
    """The account may not sign in. The message is for its owner."""


def check_claims(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address of an account.

    :raises Refused: if the settings do not allow the account, or if its address is not verified
    """
    email = claims.get("email")
    if not isinstance(email, str) or claims.get("email_verified") is not True:
        raise Refused("The provider has no verified e-mail address for your account.")
    if not email.isascii():  # the database can find another user: it compares dotless and other letters as equal
        raise Refused("Your e-mail address has letters that are not allowed.")
    _, _, domain = email.rpartition("@")
    if domain.lower() not in conf.OIDC_EMAIL_DOMAINS:
        raise Refused("The domain of your e-mail address may not sign in.")
    if conf.OIDC_REQUIRED_CLAIM is not None and not has_claim(claims, *conf.OIDC_REQUIRED_CLAIM):
        raise Refused("Your account may not sign in here: it lacks a role or group.")
    return email


def has_claim(claims: Mapping[str, Any], name: str, value: str) -> bool:
    """Return whether a claim is a text, or a list that contains it."""
    claim = claims.get(name)
    return value in claim if isinstance(claim, list) else claim == value


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
    """Create a member of the staff in the group of new users."""
    if not conf.OIDC_NEW_USER_GROUP:
        raise Refused("No user has your e-mail address.")
    group = Group.objects.filter(name=conf.OIDC_NEW_USER_GROUP).first()
    if group is None:
        logger.error("The group of OIDC_NEW_USER_GROUP does not exist: new users cannot sign in.")
        raise Refused("New users cannot sign in now.")
    if len(email) > USER_NAME_MAX:
        raise Refused("Your e-mail address is too long.")
    names = {
        field: name_of(claims, claim) for field, claim in (("first_name", "given_name"), ("last_name", "family_name"))
    }
    try:
        with transaction.atomic():
            user = User(username=email, email=email, is_staff=True, **names)
            user.set_unusable_password()
            user.save()
            user.groups.add(group)
    except IntegrityError:
        raise Refused("A user with your e-mail address as user name exists already.") from None
    return user


def name_of(claims: Mapping[str, Any], claim: str) -> str:
    """Return a name from the claims, as long as Django stores it; an empty text if it is no text."""
    name = claims.get(claim)
    return name.replace("\0", "")[:USER_NAME_MAX] if isinstance(name, str) else ""
