"""Users and groups in the admin: Django's pages, which refuse the same requests as ours.

Django lets staff who may change users also change superusers, and grant any permission. Here, staff cannot change users
who have permissions that they lack, and cannot grant such permissions. Otherwise they could give them to themselves.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import admin as django_pages
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse

from payments.admin.base import StrictAdmin

MORE_PERMISSIONS = "You cannot change this user, who is a superuser or has permissions that you do not have."

admin.site.unregister([Group, User])


class UserForm(UserChangeForm):  # type: ignore[type-arg]
    """A user. The user can keep permissions and groups that the editor could not grant."""

    editor: User | AnonymousUser

    def clean_user_permissions(self) -> QuerySet[Permission]:
        permissions: QuerySet[Permission] = self.cleaned_data["user_permissions"]
        check_grants(self.editor, permissions.exclude(user=self.instance))
        return permissions

    def clean_groups(self) -> QuerySet[Group]:
        groups: QuerySet[Group] = self.cleaned_data["groups"]
        check_grants(self.editor, Permission.objects.filter(group__in=groups.exclude(user=self.instance)))
        return groups


class GroupForm(forms.ModelForm):  # type: ignore[type-arg]
    """A group. The group can keep permissions that the editor could not grant."""

    editor: User | AnonymousUser

    def clean_permissions(self) -> QuerySet[Permission]:
        permissions: QuerySet[Permission] = self.cleaned_data["permissions"]
        check_grants(self.editor, permissions.exclude(group=self.instance) if self.instance.pk else permissions)
        return permissions


class AccountAdmin(StrictAdmin):
    """Pages of users and groups. Only an editor who has all of their permissions can change or delete them."""

    change_list_template = "admin/payments/change_list.html"

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:  # noqa: FBT001, FBT002
        form = super().get_form(request, obj, change=change, **options)
        form.editor = request.user  # type: ignore[attr-defined]
        return form

    def has_change_permission(self, request: HttpRequest, obj: User | Group | None = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or has_all_of(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | Group | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or has_all_of(request.user, obj))


@admin.register(Group)
class GroupAdmin(AccountAdmin, django_pages.GroupAdmin):
    """Django's pages of groups. The name of a group is protected like its permissions.

    New users of the single sign-on get the permissions of the group that has the name in the settings.
    """

    form = GroupForm


@admin.register(User)
class UserAdmin(AccountAdmin, django_pages.UserAdmin):  # type: ignore[type-arg]
    """Django's pages of users."""

    form = UserForm

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **options: Any) -> HttpResponse:
        user = self.get_object(request, object_id)
        if user and self.has_change_permission(request) and not self.has_change_permission(request, user):
            messages.warning(request, MORE_PERMISSIONS)
        return super().change_view(request, object_id, *args, **options)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if is_superuser(request.user) else (*fields, "is_superuser")


def is_superuser(user: User | AnonymousUser) -> bool:
    return bool(user.is_active and user.is_superuser)


def has_all_of(editor: User | AnonymousUser, account: User | Group) -> bool:
    """Return whether the editor has all permissions of a user or group, also those of an inactive user."""
    if is_superuser(editor):
        return True
    if isinstance(account, Group):
        return not missing_permissions(editor, account.permissions.all())
    permissions = Permission.objects.filter(Q(user=account) | Q(group__user=account))
    return not account.is_superuser and not missing_permissions(editor, permissions)


def check_grants(editor: User | AnonymousUser, permissions: QuerySet[Permission]) -> None:
    if missing := missing_permissions(editor, permissions):
        raise forms.ValidationError(f"You cannot grant permissions that you do not have: {', '.join(missing)}.")


def missing_permissions(editor: User | AnonymousUser, permissions: QuerySet[Permission]) -> list[str]:
    names = permissions.values_list("content_type__app_label", "codename")
    return sorted({f"{app_label}.{codename}" for app_label, codename in names} - editor.get_all_permissions())
