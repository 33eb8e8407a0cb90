"""Hostile requests to every URL of the admin: no server error, and no statement that reads many payments."""

from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Permission, User
from django.forms import ChoiceField, DateField, MultipleChoiceField, TypedChoiceField

from payments.admin.forms import RecordsForm
from payments.admin.keys import ApiKeyForm
from payments.admin.overview.views import OverviewForm
from payments.admin.payments.downloads import ExportForm
from payments.admin.payments.form import SearchForm
from payments.admin.payments.reads import ReadsForm
from payments.admin.periods import current_day
from payments.admin.report import MonthForm
from tests.support.admin_site import KEY, Request, Response, Staff, create_objects, paths, paths_with
from tests.support.scale import SEED, report, times

# Values of parameters, of fields and of arguments in paths. They are encoded, some of them incorrectly.
VALUES = (
    *("", "%00", "a%00", "%25", "%25s", "%FF", "%ED%A0%80", "%0A", "%5B", "%5B0%5D", "%5C", "%22%27"),
    *("(", "(a%2B)%2B%24"),
    *("0", "1", "-1", "1.5", "1e400", "NaN", "%D9%A3", "9" * 30, "-" + "9" * 30, "9" * 5000, "a" * 10_000),
    *("'%20OR%201=1--", "{{7*7}}", "{%25%20load%20x%20%25}", "..%2F..%2F", "%3Cscript%3E", "a,b", "1,2", "a%20" * 900),
    *("9999-12-31", "0001-01-01", "0000-00-00", "True", "id", "live", "succeeded", "EUR", "pt_1", "ct_1", "custom"),
    *("0001-01", "9999-12", "9999-12-31T23:59-23:59", "1.1.1", "yesterday", "%E2%80%AE%D8%A7", "%F0%9F%92%A9", "1e5"),
    *("[]", "%5B1,2%5D", '{"a":%201}', "%5B" * 500, "a%3D1", "pt_1" * 40, "status:x", ">1%20EUR", "%22%20%2D1"),
)

# The forms whose fields are in a query string, and their pages.
FORM_PAGES: dict[str, Any] = {
    "/admin/": OverviewForm,
    "/admin/report/": MonthForm,
    "/admin/payments/payment/": SearchForm,
    "/admin/payments/payment/export.csv": SearchForm,
    "/admin/payments/payment/export.jsonl": SearchForm,
    "/admin/payments/payment/pt_1/change/": SearchForm,
    "/admin/payments/paymentread/": ReadsForm,
    "/admin/payments/importrun/": RecordsForm,
    "/admin/payments/apikey/add/": ApiKeyForm,
}
FIELDS_OF_QUERIES = {name: field for form in FORM_PAGES.values() for name, field in form.base_fields.items()}

PARAMETERS = (
    *FIELDS_OF_QUERIES,
    *("o", "p", "q", "all", "e", "_facets", "_popup", "_to_field", "_changelist_filters", "next", "q%5B%5D", "%00"),
    *(*ExportForm.base_fields, "sums"),
    *("from", "term", "page", "app_label", "model_name", "field_name", "username", "groups", "query", "column"),
    *("mode__exact", "is_staff__exact", "groups__id__exact", "groups__isnull", "name__regex", "username__iregex"),
    *("name__icontains", "id__range", "id__in", "organization__name__contains", "keys__digest__startswith"),
    *("digest__startswith", "password__startswith", "payments__metadata__contains", "user__password__startswith"),
)

CHOICES = (ChoiceField, MultipleChoiceField, TypedChoiceField)

# The values of fields with which a hostile value of another field reaches further.
DATES = ("0001-01-01", "1899-12-31", "1900-01-01", "2026-01-01", "9998-12-31", "9999-12-31", f"{current_day()}")
WORDS = ("order", "today", "yesterday", "2026-01", "0001-01-01", "9999-12", "%3E1%20EUR", "status:open", "pt_1", "ct_1")
PLAUSIBLE = {
    **{name: DATES for name, field in FIELDS_OF_QUERIES.items() if isinstance(field, DateField)},
    **{name: list(dict(field.choices)) for name, field in FIELDS_OF_QUERIES.items() if type(field) in CHOICES},
    **dict.fromkeys(("q", "name"), WORDS),
    "organization": (f"{KEY}",),
    "currency": ("EUR",),
    **dict.fromkeys(("from", "payment"), ("pt_1",)),
}

# Some are encoded incorrectly, or have thousands of words, columns or parameters.
REPEATED = ("is_staff__exact", "mode__exact", "groups__id__exact", "organization", "status")
QUERIES = (
    *("%", "&&==", "a=%&b=%2", "=", "o", "\xff=\xff", "%5B%5D=1"),
    *("q=" + "a+" * 3000, "q=%22" * 900, "o=" + "1." * 3000),
    *("&".join([f"{name}=1"] * 999) for name in REPEATED),
    *(f"{parameter}={value}" for parameter in PARAMETERS for value in VALUES),
)

# The fields of all forms, with valid values.
FIELDS = dict(
    field.split("=", 1)
    for field in (
        *("username=baker", "password=let-me-in", "password1=new-secret-7", "password2=new-secret-7"),
        *("usable_password=true", "old_password=let-me-in", "new_password1=new-secret-7", "new_password2=new-secret-7"),
        *("first_name=A", "last_name=B", "email=a%40example.com", "is_active=on", "is_staff=on", f"groups={KEY}"),
        *("user_permissions=1", "permissions=1", "last_login_0=2026-01-01", "last_login_1=12:00"),
        *("date_joined_0=2026-01-01", "date_joined_1=12:00", "id=7", "name=Till", f"organization={KEY}", "mode=live"),
        *("expires_at=2999-01-01T00:00", "keys-TOTAL_FORMS=1", "keys-INITIAL_FORMS=1", f"keys-0-id={KEY}"),
        *(f"keys-0-organization={KEY}", "action=delete_selected", f"_selected_action={KEY}", "next=/admin/"),
        *("column=status", "query=q%3Dorder"),
    )
)
BUTTONS = (
    *("_save", "_continue", "_addanother", "_saveasnew", "_popup", "_to_field", "index", "select_across", "post"),
    *("set-password", "unset-password", "keys-0-DELETE"),
)

QUERIES_PER_PATH = times(2, long=60)
ARGUMENTS_PER_ROLE = times(6, long=len(VALUES) - 1)
RANDOM_REQUESTS = times(150, long=5000)
RANDOM_STAFF = 20
SUPERUSERS = 10


@pytest.fixture
def objects(db: None) -> None:
    create_objects()


@pytest.fixture
def staff(request: pytest.FixtureRequest, objects: None) -> Staff:
    """Log in a user with the permissions of a role."""
    user = User.objects.create_user(request.param, is_staff=True, is_superuser=request.param == "superuser")
    if request.param == "viewer":
        user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return Staff.log_in(user)


in_each_role = pytest.mark.parametrize("staff", ["superuser", "viewer", "clerk"], indirect=True)


def faults(responses: Iterable[Response]) -> list[str]:
    return [fault for response in responses for fault in response.faults()]


@in_each_role
def test_hostile_queries_cause_no_fault(staff: Staff) -> None:
    random = Random(staff.user.username)  # noqa: S311
    requests = [Request(path, query) for path in paths() for query in random.sample(QUERIES, QUERIES_PER_PATH)]

    assert faults(map(staff.send, requests)) == []


@in_each_role
def test_hostile_arguments_cause_no_fault(staff: Staff) -> None:
    random = Random(staff.user.username)  # noqa: S311
    values = random.sample(VALUES[1:], ARGUMENTS_PER_ROLE)
    requests = [Request(path) for value in values for path in paths_with(value)]

    assert faults(map(staff.send, requests)) == []


def random_staff(random: Random) -> Iterator[Staff]:
    """Create superusers, and staff with few permissions."""
    permissions = list(Permission.objects.filter(content_type__app_label__in=["auth", "payments"]).order_by("codename"))
    for number in range(RANDOM_STAFF):
        user = User.objects.create_user(f"staff{number}", is_staff=True, is_superuser=number < SUPERUSERS)
        user.user_permissions.set(random.sample(permissions, random.randrange(12)))
        yield Staff.log_in(user)


def random_request(random: Random) -> Request:
    if random.random() < 0.5:
        return random_search(random)
    method = random.choice(["GET", "GET", "HEAD", "POST", "POST"])
    path = random.choice(random.choice([paths(), paths(), paths_with(random.choice(VALUES[1:]))]))
    query = "&".join(random.sample(QUERIES, random.choice([0, 0, 1, 2])))
    return Request(path, query, random_form(random) if method == "POST" else "", method)


def random_search(random: Random) -> Request:
    """Return a request to a page with a search form: most values are plausible, some hostile or repeated."""
    path, form = random.choice([*FORM_PAGES.items()])
    names = random.choices([*form.base_fields, "from"], k=random.randrange(9))
    values = [random.choice(random.choice([VALUES, *[PLAUSIBLE.get(name, VALUES)] * 4])) for name in names]
    return Request(path, "&".join(map("=".join, zip(names, values, strict=True))))


def random_form(random: Random) -> str:
    """Return a form with valid and some hostile values, without some of its fields."""
    fields = {name: value for name, value in FIELDS.items() if random.random() < 0.9}
    fields |= {name: random.choice(VALUES) for name in random.sample([*FIELDS], random.randrange(4))}
    fields |= {name: random.choice(["1", *VALUES]) for name in random.sample(BUTTONS, random.randrange(4))}
    fields["query"] = random.choice([fields.get("query", ""), quote("&".join(random.sample(QUERIES, 2)))])
    return "&".join(f"{name}={value}" for name, value in fields.items())


def test_random_requests_cause_no_fault(objects: None) -> None:
    random = Random(SEED)  # noqa: S311
    staff = list(random_staff(random))

    responses = [random.choice(staff).send(random_request(random)) for _ in range(RANDOM_REQUESTS)]

    statuses = Counter(response.status for response in responses)
    report(", ".join(f"{number} responses {status}" for status, number in sorted(statuses.items())))
    assert faults(responses) == []
    assert {200, 302, 400, 403, 404, 405} <= statuses.keys()


@pytest.mark.parametrize(
    ("path", "statement", "may_view"),
    [
        ("/admin/payments/organization/", 'SELECT 1 FROM "payments_payment" LIMIT 1', True),
        ("/admin/payments/payment/", 'SELECT 1 FROM "payments_payment"', True),
        ("/admin/payments/payment/", 'SELECT 1 FROM "payments_payment" LIMIT 1', False),
        ("/admin/", 'SELECT 1 FROM "payments_payment" LIMIT 1', True),
    ],
)
def test_forbidden_statement_is_a_fault(path: str, statement: str, may_view: bool) -> None:
    response = Response(Request(path), 200, [statement], may_view)

    assert len(response.faults()) == 1
