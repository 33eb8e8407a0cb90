"""Lists and forms of the admin: which lookups, searches, keys and columns they accept."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from payments.admin.base import StrictAdmin
from payments.models import ApiKey, ImportRun, Organization, Payment, PaymentRead
from tests.support.admin_site import KEY, Request, Response, Staff, create_objects
from tests.support.factories import NOON, ApiKeyFactory

ORGANIZATIONS = "/admin/payments/organization/"
KEYS = "/admin/payments/apikey/"
USERS = "/admin/auth/user/"

LOOKUPS = ("regex", "iregex", "icontains", "contains", "startswith", "range", "in", "isnull", "exact", "gt", "year")

# One more than a page has.
ROWS = 101


def list_path(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist")  # noqa: SLF001


MODELS = [model for model in apps.get_models() if admin.site.is_registered(model)]

for_each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)

# The lists of payments, of their reads and of imports are not Django's.
OWN_LISTS = (ImportRun, Payment, PaymentRead)
for_each_list = pytest.mark.parametrize("path", [list_path(model) for model in MODELS if model not in OWN_LISTS])


@pytest.fixture
def user(db: None) -> User:
    create_objects()
    return User.objects.create_superuser("superuser")


@pytest.fixture
def superuser(user: User) -> Staff:
    return Staff.log_in(user)


@pytest.fixture
def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def get(staff: Staff, path: str, query: str = "") -> Response:
    return staff.send(Request(path, query))


@for_each_model
def test_every_model_admin_is_strict(model: type[Model]) -> None:
    assert isinstance(admin.site.get_model_admin(model), StrictAdmin)


@pytest.mark.once
@pytest.mark.parametrize(
    ("path", "field"),
    [
        *((ORGANIZATIONS, field) for field in ("id", "name", "keys", "keys__digest", "payments__metadata")),
        *((KEYS, field) for field in ("digest", "name", "organization", "organization__name", "created_at")),
        *((USERS, field) for field in ("username", "password", "email", "groups__name", "groups__permissions__name")),
    ],
)
def test_lookup_that_no_filter_links_to_is_refused(superuser: Staff, path: str, field: str) -> None:
    queries = [f"{field}=1", *(f"{field}__{lookup}=(" for lookup in LOOKUPS)]

    assert {query: get(superuser, path, query).status for query in queries} == dict.fromkeys(queries, 400)


@for_each_list
def test_links_of_the_filters_are_accepted(browser: Client, path: str) -> None:
    change_list = browser.get(path).context["cl"]
    queries = [link["query_string"] for spec in change_list.filter_specs for link in spec.choices(change_list)]

    assert {query: browser.get(path + query).status_code for query in queries} == dict.fromkeys(queries, 200)


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("mode__exact=live", "1 API key"),
        ("mode__exact=test", "0 API keys"),
        ("status=active", "1 API key"),
        ("status=expired", "0 API keys"),
        ("status=revoked", "0 API keys"),
        ("status=lost", "1 API key"),
    ],
)
def test_list_of_keys_can_be_filtered(browser: Client, query: str, number: str) -> None:
    assert number in browser.get(f"{KEYS}?{query}").content.decode()


def test_expired_and_revoked_keys_are_listed_apart(browser: Client) -> None:
    ApiKeyFactory.create(name="old", expires_at=NOON)
    ApiKeyFactory.create(name="stopped", expires_at=NOON, revoked_at=NOON)

    pages = {status: browser.get(KEYS, {"status": status}).context["cl"] for status in ("expired", "revoked")}

    assert {status: [key.name for key in page.result_list] for status, page in pages.items()} == {
        "expired": ["old"],
        "revoked": ["stopped"],
    }


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        (KEYS, "mode__exact=lost", 200),
        (KEYS, f"mode__exact={'a' * 10_000}", 200),
        (KEYS, "mode__exact=%00", 400),
        (KEYS, "status=%00", 400),
        (KEYS, "status=active&status=revoked", 400),
        (USERS, "groups__id__exact=1", 400),
        (USERS, "is_active__exact=%00", 400),
        (USERS, "is_active__exact=2", 302),
        (USERS, "&".join(["is_active__exact=1"] * 999), 400),
    ],
)
def test_invalid_value_of_a_filter_is_no_server_error(superuser: Staff, path: str, query: str, status: int) -> None:
    assert get(superuser, path, query).status == status


@for_each_list
def test_search_for_a_long_text_shows_an_error_and_no_rows(browser: Client, path: str) -> None:
    page = browser.get(path, {"q": "a " * 4000, "_facets": "1"})

    assert page.status_code == 200
    assert page.content.decode().count("The search text is too long. Enter at most 254 characters.") == 1
    assert page.context["cl"].result_count == 0


@for_each_list
@pytest.mark.parametrize("text", ["\0", "a " * 127, "'" * 254, "%", '"', "\\"])
def test_any_short_text_can_be_searched(superuser: Staff, path: str, text: str) -> None:
    assert get(superuser, path, urlencode({"q": text})).status == 200


@pytest.mark.parametrize("query", ["_to_field=", "_to_field=&_popup=1"])
@pytest.mark.parametrize("page", ["change", "history"])
@pytest.mark.parametrize("path", [USERS])
def test_empty_to_field_is_ignored(superuser: Staff, path: str, page: str, query: str) -> None:
    assert get(superuser, f"{path}{KEY}/{page}/", query).status == 200


@pytest.mark.parametrize("key", ["x", "9" * 30, "-1"])
def test_unknown_choice_of_several_is_an_error_of_the_form(browser: Client, key: str) -> None:
    page = browser.post(f"{USERS}{KEY}/change/", {"username": "renamed", "user_permissions": key})

    assert "user_permissions" in page.context["adminform"].form.errors
    assert User.objects.get(pk=KEY).username == "owner"


@for_each_model
def test_no_column_method_has_the_name_of_a_relation(model: type[Model]) -> None:
    """Django would sort the column by the relation."""
    model_admin: Any = admin.site.get_model_admin(model)
    methods = [name for name in model_admin.list_display if hasattr(model_admin, str(name))]

    for name in methods:
        with pytest.raises(FieldDoesNotExist):
            model_admin.opts.get_field(name)


@for_each_model
def test_sorted_list_reads_one_page_and_no_payments(superuser: Staff, model: type[Model]) -> None:
    fill_lists()
    model_admin: Any = admin.site.get_model_admin(model)
    columns = list(map(str, range(len(model_admin.list_display) + 1)))

    responses = [get(superuser, list_path(model), f"o={order}") for order in [*columns, f"-{'.-'.join(columns)}"]]

    statements = [statement for response in responses for statement in response.statements]
    sorted_rows = [sql for sql in statements if f'FROM "{model_admin.opts.db_table}"' in sql and "ORDER BY" in sql]
    assert {response.status for response in responses} == {200}
    assert [fault for response in responses for fault in response.faults()] == []
    assert len(sorted_rows) >= len(responses)
    assert [sql for sql in sorted_rows if " LIMIT " not in sql] == []


def fill_lists() -> None:
    """Create more objects than a page of a list has."""
    numbers = range(1, ROWS)
    Organization.objects.bulk_create(Organization(id=number, name=f"Shop {number}") for number in numbers)
    ApiKey.objects.bulk_create(
        ApiKey(organization_id=KEY, mode="live", name="Till", digest=f"{number:064}") for number in numbers
    )
    User.objects.bulk_create(User(username=f"user{number}") for number in numbers)
