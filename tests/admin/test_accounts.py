"""Users and groups in the admin: Django's pages, on which staff cannot gain or grant permissions that they lack."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import admin as django_pages
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

pytestmark = pytest.mark.django_db

FORM = {"username": "baker", "is_active": "on", "date_joined_0": "2026-01-01", "date_joined_1": "12:00:00"}
PASSWORD = {"usable_password": "true", "password1": "new-secret-7", "password2": "new-secret-7", "set-password": "1"}
LACKING = "You cannot grant permissions that you do not have: payments.view_payment."


def permission(codename: str) -> Permission:
    return Permission.objects.get(codename=codename)


@pytest.fixture
def clerk() -> User:
    """A member of the staff who may change accounts and view organizations, but not payments."""
    clerk = User.objects.create_user("clerk", is_staff=True)
    names = ["change_user", "add_user", "delete_user", "change_group", "add_group", "view_organization"]
    clerk.user_permissions.set(Permission.objects.filter(codename__in=names))
    return clerk


@pytest.fixture
def clerk_client(clerk: User) -> Client:
    client = Client()
    client.force_login(clerk)
    return client


@pytest.fixture
def baker() -> User:
    return User.objects.create_user("baker")


@pytest.fixture(params=["superuser", "permission", "group", "inactive"])
def manager(request: pytest.FixtureRequest) -> User:
    """A user with more permissions than the clerk."""
    manager = User.objects.create_user("manager", password="old-secret", is_superuser=request.param == "superuser")
    if request.param == "group":
        group = Group.objects.create(name="Managers")
        group.permissions.add(permission("view_payment"))
        manager.groups.add(group)
    else:
        manager.user_permissions.add(permission("view_payment"))
    manager.is_active = request.param != "inactive"
    manager.save()
    return manager


def navigation(client: Client) -> list[str]:
    page = client.get("/admin/").content.decode()
    [links] = re.findall(r'<nav class="site".*?</nav>', page, re.DOTALL)
    return re.findall(r">([^<]+)</a>", links)


def state(user: User) -> dict[str, Any]:
    user = User.objects.get(pk=user.pk)
    return {
        **User.objects.filter(pk=user.pk).values()[0],
        "permissions": sorted(user.user_permissions.values_list("codename", flat=True)),
        "groups": sorted(user.groups.values_list("name", flat=True)),
    }


def test_pages_are_those_of_django() -> None:
    users, groups = admin.site.get_model_admin(User), admin.site.get_model_admin(Group)

    assert isinstance(users, django_pages.UserAdmin)
    assert isinstance(groups, django_pages.GroupAdmin)


def test_navigation_leads_to_users_and_groups(admin_client: Client) -> None:
    pages = ["Overview", "Report", "Payments", "Organizations", "API keys", "Users", "Groups"]

    assert navigation(admin_client)[: len(pages)] == pages


def test_navigation_contains_only_permitted_pages(clerk_client: Client, clerk: User) -> None:
    before = navigation(clerk_client)
    clerk.user_permissions.remove(permission("change_group"))

    assert before == ["Overview", "Organizations", "Users", "Groups"]
    assert navigation(clerk_client) == ["Overview", "Organizations", "Users"]


def test_user_can_be_added_to_a_group(admin_client: Client, baker: User) -> None:
    group = Group.objects.create(name="Clerks")

    response = admin_client.post(f"/admin/auth/user/{baker.pk}/change/", {**FORM, "groups": [group.pk]})

    assert response.status_code == 302
    assert baker.groups.get() == group


def test_superuser_can_make_a_superuser(admin_client: Client, baker: User) -> None:
    admin_client.post(f"/admin/auth/user/{baker.pk}/change/", {**FORM, "is_superuser": "on"})

    assert state(baker)["is_superuser"]


def test_user_with_more_permissions_cannot_be_changed(clerk_client: Client, manager: User) -> None:
    before = state(manager)

    page = clerk_client.get(f"/admin/auth/user/{manager.pk}/change/").content.decode()
    statuses = [
        clerk_client.post(f"/admin/auth/user/{manager.pk}/change/", FORM).status_code,
        clerk_client.post(f"/admin/auth/user/{manager.pk}/password/", PASSWORD).status_code,
        clerk_client.post(f"/admin/auth/user/{manager.pk}/delete/", {"post": "yes"}).status_code,
    ]
    clerk_client.post(
        "/admin/auth/user/", {"action": "delete_selected", "_selected_action": [manager.pk], "post": "yes"}
    )

    assert "You cannot change this user, who is a superuser or has permissions that you do not have." in page
    assert 'name="username"' not in page
    assert statuses == [403, 403, 403]
    assert state(manager) == before


def test_user_without_more_permissions_can_be_changed(clerk_client: Client, baker: User) -> None:
    page = clerk_client.get(f"/admin/auth/user/{baker.pk}/change/").content.decode()
    changed = clerk_client.post(f"/admin/auth/user/{baker.pk}/change/", {**FORM, "first_name": "Ann"})
    password = clerk_client.post(f"/admin/auth/user/{baker.pk}/password/", PASSWORD)

    assert "You cannot change this user" not in page
    assert (changed.status_code, password.status_code) == (302, 302)
    assert state(baker)["first_name"] == "Ann"


@pytest.mark.parametrize("name", ["clerk", "baker"])
def test_staff_cannot_make_superusers(clerk_client: Client, baker: User, name: str) -> None:
    user = User.objects.get(username=name)

    clerk_client.post(f"/admin/auth/user/{user.pk}/change/", {**FORM, "username": name, "is_superuser": "on"})

    assert not state(user)["is_superuser"]


def test_staff_can_grant_their_own_permissions(clerk_client: Client, baker: User) -> None:
    form = {**FORM, "user_permissions": [permission("view_organization").pk]}

    response = clerk_client.post(f"/admin/auth/user/{baker.pk}/change/", form)

    assert response.status_code == 302
    assert state(baker)["permissions"] == ["view_organization"]


@pytest.mark.parametrize("name", ["clerk", "baker"])
def test_staff_cannot_grant_permissions_that_they_lack(clerk_client: Client, baker: User, name: str) -> None:
    user = User.objects.get(username=name)
    before = state(user)
    form = {**FORM, "username": name, "user_permissions": [permission("view_payment").pk]}

    page = clerk_client.post(f"/admin/auth/user/{user.pk}/change/", form).content.decode()

    assert LACKING in page
    assert state(user) == before


@pytest.mark.parametrize("name", ["clerk", "baker"])
def test_staff_cannot_add_users_to_a_group_with_more_permissions(clerk_client: Client, baker: User, name: str) -> None:
    user = User.objects.get(username=name)
    before = state(user)
    group = Group.objects.create(name="Managers")
    group.permissions.add(permission("view_payment"))

    page = clerk_client.post(f"/admin/auth/user/{user.pk}/change/", {**FORM, "username": name, "groups": [group.pk]})

    assert LACKING in page.content.decode()
    assert state(user) == before


def test_staff_cannot_grant_a_group_permissions_that_they_lack(clerk_client: Client) -> None:
    group = Group.objects.create(name="Clerks")
    form = {"name": "Clerks", "permissions": [permission("view_payment").pk]}

    pages = [
        clerk_client.post(f"/admin/auth/group/{group.pk}/change/", form).content.decode(),
        clerk_client.post("/admin/auth/group/add/", {**form, "name": "Others"}).content.decode(),
    ]

    assert [LACKING in page for page in pages] == [True, True]
    assert not group.permissions.exists()
    assert Group.objects.count() == 1


@pytest.mark.parametrize("page", ["change", "delete"])
def test_group_with_more_permissions_than_its_editor_cannot_be_changed(clerk_client: Client, page: str) -> None:
    group = Group.objects.create(name="Managers")
    group.permissions.add(permission("view_payment"))

    response = clerk_client.post(f"/admin/auth/group/{group.pk}/{page}/", {"name": "Clerks", "post": "yes"})

    group.refresh_from_db()
    assert response.status_code == 403
    assert group.name == "Managers"
