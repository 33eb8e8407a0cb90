"""Users and groups in the admin: Django's pages, which refuse the same requests as ours."""

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth import admin as django_pages
from django.contrib.auth.models import Group, User

from payments.admin.strict import StrictAdmin

if TYPE_CHECKING:
    DjangoUserAdmin = django_pages.UserAdmin[User]
else:
    DjangoUserAdmin = django_pages.UserAdmin

admin.site.unregister([Group, User])


@admin.register(Group)
class GroupAdmin(StrictAdmin, django_pages.GroupAdmin):
    """Django's pages of groups."""


@admin.register(User)
class UserAdmin(StrictAdmin, DjangoUserAdmin):
    """Django's pages of users."""
