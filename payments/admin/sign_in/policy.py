"""Which user an account at the OpenID provider belongs to."""

import logging
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from payments.conf import conf

NAME_TAKEN = "A user with your e-mail address as user name exists already."

logger = logging.getLogger(__name__)


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
        raise Refused("Your account may not sign in here: it lacks a role or group.")
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
    """Create a member of the staff in the group of new users."""
    if not conf.OIDC_NEW_USER_GROUP:
        raise Refused("No user has your e-mail address.")
    group = Group.objects.filter(name=conf.OIDC_NEW_USER_GROUP).first()
    if group is None:
        logger.error("The group of OIDC_NEW_USER_GROUP does not exist: new users cannot sign in.")
        raise Refused("New users cannot sign in now.")
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
            user.groups.add(group)
    except IntegrityError:
        raise Refused(NAME_TAKEN) from None
    return user
