"""`create_staff` and the roles of the migration."""

from importlib import import_module
from io import StringIO

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from payments.admin.grants import role_of, scope_of_account
from payments.admin.scope import Scope
from payments.models import Role
from tests.support.factories import OrganizationFactory

pytestmark = pytest.mark.django_db

SECRET = "correct horse battery"  # noqa: S105  of a test

VIEWER = {"view_organization", "view_payment"}
KEY_MANAGER = VIEWER | {"view_apikey", "add_apikey", "change_apikey"}
ADMINISTRATOR = KEY_MANAGER | {"add_organization", "change_organization", "view_importrun", "view_paymentread"}
ADMINISTRATOR |= {"anonymize_payment", "view_user", "add_user", "change_user"}


@pytest.fixture(autouse=True)
def organizations(db: None) -> None:
    for number in (7, 8):
        OrganizationFactory.create(id=number)


def create_staff(*arguments: str) -> tuple[str, str]:
    """Run the command, and return its stdout and stderr."""
    output, messages = StringIO(), StringIO()
    call_command("create_staff", *arguments, stdout=output, stderr=messages)
    return output.getvalue(), messages.getvalue()


def can_log_in(name: str, password: str) -> bool:
    return Client().post("/admin/login/", {"username": name, "password": password}).status_code == 302


@pytest.mark.parametrize(
    ("slug", "role"),
    [("viewer", Role.VIEWER), ("key-manager", Role.KEY_MANAGER), ("administrator", Role.ADMINISTRATOR)],
)
def test_user_gets_role_and_organizations_and_a_password(slug: str, role: Role) -> None:
    output, messages = create_staff("ann", "--role", slug, "--organization", "7", "8", "--email", "ann@example.com")

    ann = User.objects.get()
    assert (role_of(ann), scope_of_account(ann), ann.email) == (role, Scope(frozenset([7, 8])), "ann@example.com")
    assert (ann.is_staff, ann.is_superuser) == (True, False)
    assert messages == f"Created ann, {role}. The user can log in at /admin/.\n"
    assert len(output.splitlines()) == 1
    assert can_log_in("ann", output.strip())


def test_password_of_the_environment_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAFF_PASSWORD", SECRET)

    output, messages = create_staff("ann", "--role", "viewer", "--all-organizations")

    assert (output, SECRET in messages) == ("", False)
    assert scope_of_account(User.objects.get()).ids is None
    assert can_log_in("ann", SECRET)


@pytest.mark.parametrize(("email", "password"), [("", ""), ("ann@example.com", SECRET)])
def test_user_without_passwords_needs_an_email_address(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, email: str, password: str
) -> None:
    settings.PAYMENTS_PASSWORD_LOGIN = False
    monkeypatch.setenv("STAFF_PASSWORD", password)

    with pytest.raises(CommandError, match=r"^PASSWORD_LOGIN is off: set --email"):
        create_staff("ann", "--role", "viewer", "--organization", "7", "--email", email)


def test_user_without_passwords_gets_none(settings: Settings) -> None:
    settings.PAYMENTS_PASSWORD_LOGIN = False

    output, _ = create_staff("ann", "--role", "viewer", "--organization", "7", "--email", "ann@example.com")

    assert (output, User.objects.get().has_usable_password()) == ("", False)


@pytest.mark.parametrize(
    ("arguments", "password", "message"),
    [
        (["ANN", "--role", "viewer", "--organization", "7"], "", "There is a user"),
        (["ann", "--role", "viewer", "--organization", "7"], "", "exists"),
        (["bob", "--role", "viewer", "--organization", "7", "9"], "", "9"),
        (["b b", "--role", "viewer", "--organization", "7"], "", "username"),
        (["bob", "--role", "viewer", "--organization", "7"], "12345", "password"),
        (["bob", "--role", "viewer", "--organization", "7", "--email", "x"], "", "email"),
        (["bob", "--role", "viewer"], "", "--organization --all-organizations"),
        (["bob", "--role", "viewer", "--organization", "7", "--all-organizations"], "", "not allowed"),
        (["bob", "--organization", "7"], "", "--role"),
        (["bob", "--role", "owner", "--organization", "7"], "", "owner"),
    ],
)
def test_invalid_user_is_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], password: str, message: str
) -> None:
    User.objects.create_user("ann")
    monkeypatch.setenv("STAFF_PASSWORD", password)

    with pytest.raises(CommandError) as error:
        create_staff(*arguments)

    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    ("role", "expected"), [(Role.VIEWER, VIEWER), (Role.KEY_MANAGER, KEY_MANAGER), (Role.ADMINISTRATOR, ADMINISTRATOR)]
)
def test_migration_creates_the_group_of_each_role(role: Role, expected: set[str]) -> None:
    group = Group.objects.get(name=role)

    assert set(group.permissions.values_list("codename", flat=True)) == expected


def test_migration_keeps_an_existing_group() -> None:
    Group.objects.get(name="Viewer").permissions.clear()
    Group.objects.get(name="Key manager").delete()

    import_module("payments.migrations.0002_roles").create_roles(apps)

    numbers = {group.name: group.permissions.count() for group in Group.objects.all()}
    assert numbers == {"Viewer": 0, "Key manager": len(KEY_MANAGER), "Administrator": len(ADMINISTRATOR)}
