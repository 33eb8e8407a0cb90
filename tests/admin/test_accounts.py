"""Users and groups in the admin: Django's pages."""

from django.contrib import admin
from django.contrib.auth import admin as django_pages
from django.contrib.auth.models import Group, User
from django.test import Client


def test_pages_are_those_of_django() -> None:
    users, groups = admin.site.get_model_admin(User), admin.site.get_model_admin(Group)

    assert isinstance(users, django_pages.UserAdmin)
    assert isinstance(groups, django_pages.GroupAdmin)


def test_user_can_be_added_to_a_group(admin_client: Client) -> None:
    group = Group.objects.create(name="Clerks")
    user = User.objects.create_user("baker")
    form = {"username": "baker", "groups": [group.pk], "date_joined_0": "2026-01-01", "date_joined_1": "12:00:00"}

    response = admin_client.post(f"/admin/auth/user/{user.pk}/change/", form)

    assert response.status_code == 302
    assert user.groups.get() == group
