"""The role and the organizations of a user, from the claims of the account at the OpenID provider."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import transaction

from payments.admin.grants import assign_organizations, assign_role
from payments.admin.scope import EVERYTHING, Scope
from payments.admin.sign_in.claims import Refused
from payments.conf import conf
from payments.models import Role

ALL = "all"
ORGANIZATION_ID = r"[1-9][0-9]{0,17}"

logger = logging.getLogger(__name__)


class ClaimedAccess(NamedTuple):
    """What the claims say. None: no claim is configured, and the user keeps what the admin has stored."""

    role: Role | None
    scope: Scope | None


def claimed_access(claims: Mapping[str, Any]) -> ClaimedAccess:
    """Return the access from the claims that `used_claims` returns.

    :raises Refused: a claim has an unknown role or an invalid organization
    """
    role = claimed_role(claims["roles"]) if conf.OIDC_ROLE_CLAIM else None
    return ClaimedAccess(role, claimed_scope(claims["organizations"]) if conf.OIDC_ORGANIZATIONS_CLAIM else None)


def claimed_role(names: Sequence[str]) -> Role | None:
    """Return the highest of the roles, which have the names of `create_staff`."""
    roles = {role.slug: role for role in Role}
    if unknown := [name for name in names if name not in roles]:
        raise Refused(f"Your account has a role that is unknown here: {unknown[0] or 'not a short text'}.")
    return max((roles[name] for name in names), key=[*Role].index, default=None)


def claimed_scope(names: Sequence[str]) -> Scope:
    if ALL in names:
        return EVERYTHING
    if invalid := [name for name in names if not re.fullmatch(ORGANIZATION_ID, name)]:
        raise Refused(f"Your account has an organization that is no ID: {invalid[0] or 'not a short text'}.")
    return Scope(frozenset(map(int, names)))


@transaction.atomic
def apply_access(user: User, access: ClaimedAccess) -> None:
    """Replace what the claims control. Superusers keep what they have.

    The user loses the password: a user with fewer rights may have set it, and it would outlast the account.
    """
    if user.is_superuser or not (conf.OIDC_ROLE_CLAIM or conf.OIDC_ORGANIZATIONS_CLAIM):
        return
    if user.has_usable_password():
        user.set_unusable_password()
        user.save(update_fields=["password"])
        logger.warning("Removed the password of user %s, whose access is in claims.", user.pk)
    if conf.OIDC_ROLE_CLAIM:
        assign_role(user, access.role)
    if access.scope is not None:
        existing = access.scope.existing()
        if access.scope.ids != existing.ids:
            logger.warning("Ignored unknown organizations in the claims of user %s.", user.pk)
        assign_organizations(user, existing)
