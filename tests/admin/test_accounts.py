"""Users in the admin: users see, grant and edit only what they have themselves."""

import re
from collections.abc import Collection
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from payments.admin.grants import assign_organizations, assign_role, scope_of_account
from payments.admin.scope import EVERYTHING, Scope
from payments.models import Organization, Role
from tests.support.factories import PaymentFactory
from tests.support.threads import call_while_held

pytestmark = pytest.mark.django_db

USERS = "/admin/auth/user/"
OWN, OTHER, THIRD = 41, 42, 43
LAST_SUPERUSER = "This is the last superuser."
NAMELESS = "Wrong user name or password, or this account may not use the admin."

TIMES = {"date_joined_0": "2026-01-01", "date_joined_1": "12:00:00"}
SECRET = "correct horse battery"  # noqa: S105  of a test
PASSWORD = {"usable_password": "true", "password1": SECRET, "password2": SECRET}


@pytest.fixture(autouse=True)
def organizations(db: None) -> None:
    for number, name in ((OWN, "Own Books"), (OTHER, "Other Bikes"), (THIRD, "Third Toys")):
        Organization.objects.create(id=number, name=name)


def create(name: str, role: Role | None = Role.VIEWER, organizations: Collection[int] | None = (OWN,)) -> User:
    """Create a user with a role. None as organizations means all."""
    user = User.objects.create_user(name, password=SECRET, is_staff=True)
    assign_role(user, role)
    assign_organizations(user, EVERYTHING if organizations is None else Scope(frozenset(organizations)))
    return user


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def form_of(name: str, *organizations: int, role: Role | None = Role.VIEWER, **values: Any) -> dict[str, Any]:
    """Return the fields of the page that changes an active user."""
    return {
        "username": name,
        "is_active": "on",
        "role": role.value if role else "",
        "organizations": organizations,
        **TIMES,
        **values,
    }


def change(client: Client, user: User, form: dict[str, Any]) -> int:
    return client.post(f"{USERS}{user.pk}/change/", form).status_code


def access_of(name: str) -> dict[str, Any]:
    """Return what a user may do and see."""
    user = User.objects.get(username=name)
    return {
        "groups": sorted(user.groups.values_list("name", flat=True)),
        "organizations": scope_of_account(user).ids,
        "permissions": sorted(user.user_permissions.exclude(codename="all_organizations").values_list("codename")),
        "is_superuser": user.is_superuser,
        "is_staff": user.is_staff,
    }


@pytest.fixture
def administrator() -> Client:
    """The browser of an administrator of one organization."""
    return browser_of(create("administrator", Role.ADMINISTRATOR))


# What the editor lacks: each of these users has more.
BEYOND = {
    "superuser": lambda: User.objects.create_superuser("target"),
    "inactive superuser": lambda: User.objects.create_superuser("target", is_active=False),
    "all organizations": lambda: create("target", organizations=None),
    "another organization": lambda: create("target", organizations=[OWN, OTHER]),
    "only another organization": lambda: create("target", organizations=[OTHER]),
    "no organization": lambda: create("target", organizations=[]),
    "single permission": lambda: with_permission(create("target"), "delete_group"),
    "group": lambda: with_group(create("target"), "delete_group"),
}


def with_permission(user: User, codename: str) -> User:
    user.user_permissions.add(Permission.objects.get(codename=codename))
    return user


def with_group(user: User, codename: str) -> User:
    group = Group.objects.create(name="Clerks")
    group.permissions.add(Permission.objects.get(codename=codename))
    user.groups.add(group)
    return user


@pytest.mark.once
@pytest.mark.parametrize("beyond", BEYOND)
def test_user_with_more_than_the_editor_is_like_an_unknown_user(administrator: Client, beyond: str) -> None:
    target = BEYOND[beyond]()
    before = User.objects.filter(pk=target.pk).values().get(), access_of("target")
    pages: dict[str, dict[int, Any]] = {page: {} for page in ("change", "password", "history", "delete")}
    forms = {
        "change": form_of("renamed", OWN),
        "password": {**PASSWORD, "set-password": "1"},
        "delete": {"post": "yes"},
    }

    for page, responses in pages.items():
        for number in (target.pk, 10**9):
            read = administrator.get(f"{USERS}{number}/{page}/")
            written = administrator.post(f"{USERS}{number}/{page}/", forms.get(page, {}))
            responses[number] = [
                (response.status_code, response.headers.get("Location"), masked(response.content.decode()))
                for response in (read, written)
            ]

    assert [page for page, responses in pages.items() if responses[target.pk] != responses[10**9]] == []
    assert "target" not in administrator.get(USERS).content.decode()
    assert (User.objects.filter(pk=target.pk).values().get(), access_of("target")) == before


def masked(text: str) -> str:
    """Return a page without the texts that differ in each response."""
    return re.sub(r'csrfmiddlewaretoken" value="[^"]+"|<code>[0-9a-f]{32}</code>', "", text)


@pytest.mark.parametrize("role", [None, Role.VIEWER, Role.ADMINISTRATOR])
def test_administrator_changes_users_within_the_own_access(administrator: Client, role: Role | None) -> None:
    target = create("target", role)

    status = change(administrator, target, form_of("renamed", OWN, role=Role.KEY_MANAGER))

    assert status == 302
    assert access_of("renamed")["groups"] == ["Key manager"]


@pytest.mark.parametrize("page", ["add", "change"])
@pytest.mark.parametrize(
    "values",
    [
        {"organizations": [OTHER]},
        {"organizations": [OWN, OTHER]},
        {"organizations": []},
        {"organizations": ["x"]},
        {"role": "Clerks"},
        {"role": "Superuser"},
    ],
)
def test_administrator_cannot_grant_more(administrator: Client, page: str, values: dict[str, Any]) -> None:
    with_group(create("target"), "delete_group").groups.remove(Group.objects.get(name="Clerks"))
    target = User.objects.get(username="target")
    path = f"{USERS}add/" if page == "add" else f"{USERS}{target.pk}/change/"
    before = access_of("target")

    response = administrator.post(path, {**form_of("new", OWN), **PASSWORD, **values})

    assert response.status_code == 200
    assert list(response.context["adminform"].form.errors) == [*values]
    assert access_of("target") == before
    assert not User.objects.filter(username="new").exists()


def test_unknown_and_foreign_organizations_have_the_same_error(administrator: Client) -> None:
    errors = {}
    for number in (OTHER, 999):
        response = administrator.post(f"{USERS}add/", {**form_of("new", number), **PASSWORD})
        errors[number] = str(response.context["adminform"].form.errors).replace(str(number), "ID")

    assert errors[OTHER] == errors[999]


HAND_MADE = {
    "all_organizations": "on",
    "is_superuser": "on",
    "is_staff": "on",
    "groups": "GROUP",
    "user_permissions": "PERMISSION",
    "password": "!",
}


@pytest.mark.parametrize("page", ["add", "change"])
def test_fields_that_an_editor_does_not_get_are_ignored(administrator: Client, page: str) -> None:
    target = create("target")
    ids = {"PERMISSION": Permission.objects.get(codename="delete_group").pk, "GROUP": Group.objects.create(name="C").pk}
    path = f"{USERS}add/" if page == "add" else f"{USERS}{target.pk}/change/"

    hand_made = {name: ids.get(value, value) for name, value in HAND_MADE.items()}
    administrator.post(path, {**form_of("new", OWN), **PASSWORD, **hand_made})

    assert access_of("new") == {
        "groups": ["Viewer"],
        "organizations": {OWN},
        "permissions": [],
        "is_superuser": False,
        "is_staff": True,
    }
    assert User.objects.get(username="new").check_password(SECRET)


@pytest.mark.parametrize(("role", "expected"), [(Role.VIEWER, []), (Role.ADMINISTRATOR, [*Role])])
def test_editor_can_assign_only_roles_within_the_own(role: Role, expected: list[Role]) -> None:
    editor = create("editor", role)
    for codename in ("add_user", "change_user", "view_user"):
        with_permission(editor, codename)

    page = browser_of(editor).get(f"{USERS}add/")

    choices = [value for value, _ in page.context["adminform"].form.fields["role"].choices]
    assert choices == ["", *(expected or [Role.VIEWER])]


def test_administrator_of_all_organizations_grants_all_and_sees_new_users() -> None:
    create("target", None, [])
    target = User.objects.get(username="target")
    client = browser_of(create("editor", Role.ADMINISTRATOR, None))

    status = change(client, target, form_of("target", role=Role.VIEWER, all_organizations="on"))

    assert (status, access_of("target")["organizations"]) == (302, None)


def test_new_user_can_log_in_and_sees_the_organization(administrator: Client) -> None:
    PaymentFactory.create(id="pt_own", organization_id=OWN)

    added = administrator.post(f"{USERS}add/", {**form_of("ann", OWN, email="ann@example.com"), **PASSWORD})
    browser = Client()
    browser.post("/admin/login/", {"username": "ann", "password": SECRET})

    assert (added.status_code, added.headers["Location"]) == (302, USERS)
    assert "pt_own" in browser.get(f"/admin/payments/payment/?organization={OWN}").content.decode()
    assert User.objects.get(username="ann").email == "ann@example.com"


def test_new_user_without_passwords_needs_an_email_address(administrator: Client, settings: Settings) -> None:
    settings.PAYMENTS_PASSWORD_LOGIN = False

    assert "password1" not in administrator.get(f"{USERS}add/").content.decode()
    assert administrator.post(f"{USERS}add/", form_of("ann", OWN)).status_code == 200
    administrator.post(f"{USERS}add/", {**form_of("ann", OWN, email="ann@example.com"), **PASSWORD})

    assert not User.objects.get(username="ann").has_usable_password()


@pytest.mark.parametrize(("issuer", "is_asked"), [("", False), ("https://login.example", True)])
def test_new_user_can_have_no_password_if_there_is_single_sign_on(
    administrator: Client, settings: Settings, issuer: str, is_asked: bool
) -> None:
    settings.PAYMENTS_OIDC_ISSUER = issuer

    page = administrator.get(f"{USERS}add/").content.decode()

    assert ("Single sign-on only" in page, "password1" in page) == (is_asked, True)


def test_changed_organizations_and_roles_apply_at_the_next_request() -> None:
    ann = create("ann", Role.KEY_MANAGER)
    browser = browser_of(ann)
    statuses = [browser.get(f"/admin/payments/organization/{OWN}/change/").status_code]

    assign_organizations(ann, Scope(frozenset([OTHER])))
    statuses += [browser.get(f"/admin/payments/organization/{number}/change/").status_code for number in (OWN, OTHER)]
    statuses.append(browser.get("/admin/payments/apikey/").status_code)
    assign_role(ann, Role.VIEWER)
    statuses.append(browser.get("/admin/payments/apikey/").status_code)

    assert statuses == [200, 302, 200, 200, 403]


@pytest.mark.parametrize("path", ["", "report/", "payments/payment/", "payments/organization/", "password_change/"])
def test_page_of_a_user_without_organizations_says_whom_to_ask(path: str) -> None:
    """A user who existed before the organizations of users is such a user."""
    user = User.objects.create_user("old", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_payment", "view_organization"]))
    PaymentFactory.create(organization_id=OWN)

    page = browser_of(user).get(f"/admin/{path}").content.decode()

    assert page.count("Your user old sees no organization yet. Ask an administrator") == 1
    assert "Own Books" not in page
    assert "Add an organization" not in page


@pytest.mark.parametrize(
    ("can_add", "text"), [(True, "Add an organization"), (False, "Ask an administrator to add one")]
)
def test_link_to_add_an_organization_needs_the_permission(can_add: bool, text: str) -> None:
    Organization.objects.all().delete()
    browser = browser_of(create("ann", Role.ADMINISTRATOR if can_add else Role.VIEWER, None))

    assert text in browser.get("/admin/").content.decode()


def test_user_without_a_role_is_told_whom_to_ask() -> None:
    page = browser_of(create("ann", None)).get("/admin/").content.decode()

    assert "Your user ann may not view payments. Ask an administrator to give it a role." in page


@pytest.mark.parametrize("name", ["ann", "unknown", "customer"])
def test_login_error_names_no_cause(name: str) -> None:
    create("ann")
    User.objects.create_user("customer", password="wrong")

    page = Client().post("/admin/login/", {"username": name, "password": "wrong"}).content.decode()

    assert NAMELESS in page


def test_superuser_sees_single_permissions_and_other_groups_below_advanced(admin_client: Client) -> None:
    target = with_group(with_permission(create("target"), "all_organizations"), "view_payment")
    page = admin_client.get(f"{USERS}{target.pk}/change/")
    titles = [fieldset.name for fieldset in page.context["adminform"]]
    form = form_of("target", is_staff="on", all_organizations="on", groups=[Group.objects.get(name="Clerks").pk])

    change(admin_client, target, {**form, "user_permissions": [Permission.objects.get(codename="view_apikey").pk]})

    assert titles == [None, "Access", "Advanced"]
    assert access_of("target") == {
        "groups": ["Clerks", "Viewer"],
        "organizations": None,
        "permissions": [("view_apikey",)],
        "is_superuser": False,
        "is_staff": True,
    }


def test_superuser_makes_a_superuser(admin_client: Client) -> None:
    change(admin_client, create("target"), form_of("target", OWN, is_staff="on", is_superuser="on"))

    assert access_of("target")["is_superuser"]


@pytest.mark.parametrize(
    ("lost", "other"),
    [
        ("is_superuser", {}),
        ("is_superuser", {"is_active": False}),
        ("is_staff", {"is_staff": False}),
        ("is_active", {"is_superuser": False}),
    ],
)
def test_last_superuser_keeps_the_rights(admin_user: User, lost: str, other: dict[str, bool]) -> None:
    values: dict[str, Any] = {"is_superuser": True, "is_staff": True, **other}
    User.objects.create_user("other", **values)
    form = form_of(admin_user.username, is_staff="on", is_superuser="on")
    del form[lost]

    response = browser_of(admin_user).post(f"{USERS}{admin_user.pk}/change/", form)

    is_last = bool(other)
    assert (LAST_SUPERUSER in response.content.decode()) == is_last
    admin_user.refresh_from_db()
    assert getattr(admin_user, lost) == is_last


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_two_superusers_cannot_demote_each_other_at_once() -> None:
    users = [User.objects.create_superuser(name) for name in ("ann", "bob")]
    browsers = [browser_of(user) for user in users]
    demote = [
        lambda browser=browser, user=user: change(browser, user, form_of(user.username, is_staff="on"))
        for browser, user in zip(browsers, reversed(users), strict=True)
    ]

    statuses = call_while_held(lambda: list(User.objects.select_for_update()), *demote)

    assert sorted(statuses) == [200, 302]
    assert User.objects.filter(is_superuser=True).count() == 1


@pytest.mark.parametrize("path", [f"{USERS}1/delete/", "/admin/auth/group/", "/admin/auth/group/add/"])
def test_users_and_groups_cannot_be_deleted_and_groups_have_no_pages(admin_client: Client, path: str) -> None:
    assert admin_client.post(path, {"post": "yes"}).status_code in {302, 403, 404}
    assert admin_client.get(path).status_code in {302, 403, 404}


def test_list_shows_access_with_a_constant_number_of_queries(administrator: Client, admin_client: Client) -> None:
    create("ann", Role.VIEWER, [OWN, OTHER])
    create("bob", Role.KEY_MANAGER, None)
    create("eve", None, [])
    with CaptureQueriesContext(connection) as few:
        cells = admin_client.get(USERS).content.decode()
    for number in range(20):
        create(f"user{number}", Role.VIEWER, [OWN, OTHER])
    with CaptureQueriesContext(connection) as many:
        admin_client.get(USERS)

    for text in ("Other Bikes, Own Books", "Key manager", ">All<", ">None<", ">Superuser<"):
        assert text in cells
    assert len(many) == len(few) <= 16
