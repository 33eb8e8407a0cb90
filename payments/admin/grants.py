"""Roles and organizations of users, and which of them another user may grant.

Users grant only what they have. They do not see or change a user with more rights, because a new password for this user
would give them these rights. So staff of some organizations see only users of these organizations.
"""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from payments.admin.scope import ALL_ORGANIZATIONS, EVERYTHING, Scope
from payments.models import Role, StaffOrganization

ALL_CODENAME = ALL_ORGANIZATIONS.partition(".")[2]


def manageable_users(editor: User | AnonymousUser) -> QuerySet[User]:
    """Return the users whom the editor sees and may change."""
    users = User.objects.order_by("username").prefetch_related(
        "groups", "user_permissions", "staff_organizations__organization"
    )
    if editor.is_superuser:
        return users
    of_user = Q(user=OuterRef("pk")) | Q(group__user=OuterRef("pk"))
    users = users.filter(~Exists(permissions_beyond(editor).filter(of_user)), is_superuser=False)
    scope = Scope.of(editor)
    if scope.ids is None:
        return users
    rows = StaffOrganization.objects.filter(user=OuterRef("pk"))
    return users.filter(Exists(rows), ~Exists(rows.exclude(organization_id__in=scope.ids)))


def permissions_beyond(editor: User | AnonymousUser) -> QuerySet[Permission]:
    """Return the permissions that the editor, who is no superuser, does not have."""
    own = Permission.objects.filter(Q(user=editor.pk) | Q(group__user=editor.pk))
    return Permission.objects.exclude(pk__in=own.values("pk"))


def assignable_roles(editor: User | AnonymousUser) -> list[Role]:
    """Return the roles without permissions that the editor lacks."""
    groups = Group.objects.filter(name__in=Role.values)
    if not editor.is_superuser:
        groups = groups.exclude(permissions__in=permissions_beyond(editor))
    names = set(groups.values_list("name", flat=True))
    return [role for role in Role if role in names]


def other_groups() -> QuerySet[Group]:
    """Return the groups that are not roles. The admin creates none, but an installation can have some."""
    return Group.objects.exclude(name__in=Role.values).order_by("name")


def role_of(user: User) -> Role | None:
    """Return the role of a user; of several, the one with the most permissions."""
    names = {group.name for group in user.groups.all()}
    return next((role for role in reversed(Role) if role in names), None)


def scope_of_account(user: User) -> Scope:
    """Return the organizations of a user as they are stored, also for an inactive user or a superuser."""
    if any(permission.codename == ALL_CODENAME for permission in user.user_permissions.all()):
        return EVERYTHING
    return Scope(frozenset(row.organization_id for row in user.staff_organizations.all()))


@transaction.atomic
def assign_role(user: User, role: Role | None) -> None:
    """Replace the role of a user."""
    user.groups.remove(*Group.objects.filter(name__in=Role.values))
    if role is not None:
        user.groups.add(Group.objects.get(name=role.value))


@transaction.atomic
def assign_organizations(user: User, scope: Scope) -> None:
    """Replace the organizations of a user. A concurrent change waits, so that none becomes a mixture of both."""
    User.objects.select_for_update().get(pk=user.pk)
    permission = Permission.objects.get(content_type__app_label="payments", codename=ALL_CODENAME)
    if scope.ids is None:
        user.user_permissions.add(permission)
    else:
        user.user_permissions.remove(permission)
    StaffOrganization.objects.filter(user=user).delete()
    rows = (StaffOrganization(user=user, organization_id=number) for number in sorted(scope.ids or ()))
    StaffOrganization.objects.bulk_create(rows)


def is_last_superuser(user: User) -> bool:
    """Return whether no other active user is a superuser. Lock the superusers until the transaction ends."""
    superusers = User.objects.select_for_update().filter(is_superuser=True, is_active=True, is_staff=True)
    return not {*superusers.order_by("pk").values_list("pk", flat=True)} - {user.pk}
