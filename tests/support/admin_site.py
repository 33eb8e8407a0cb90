"""The URLs of the admin, requests by staff, and the faults of a response."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from typing import NamedTuple, Self

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db import connection, reset_queries, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver

from payments.models import ApiKey, Organization, StaffOrganization
from tests.support.factories import OrganizationFactory, PaymentFactory

START_PAGE = "/admin/"
PAYMENT_PAGES = "/admin/payments/payment/"
READS_PAGE = "/admin/payments/paymentread/"

# A key that no sequence reaches.
KEY = 1_000_000

ORGANIZATION_PAGE = f"/admin/payments/organization/{KEY}/change/"

PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>[^)]*\)")

# The arguments of URLs that are not the key of an object.
ARGUMENTS = {"app_label": "payments", "suffix": "csv", "url": "unknown"}

VIEW_PAYMENTS = ("payments.view_payment", "payments.change_payment")

PAYMENTS_TABLE = '"payments_payment"'
LIMIT = " LIMIT "
ONE_PAYMENT = f'{PAYMENTS_TABLE}."id" = '
SOME_DAYS = re.compile(r'"payments_payment"."(created_at|paid_at)" >= .* "payments_payment"."\1" < ')
NEWEST = f'{PAYMENTS_TABLE}."id" DESC{LIMIT}1'
ANY_OF_ORGANIZATION = re.compile(
    r'SELECT 1 AS "a" FROM "payments_payment" WHERE .*"organization_id" = [0-9]+\) LIMIT 1'
)


def create_objects() -> None:
    """Create payments, and an object of each other model with the key `KEY`."""
    organization: Organization = OrganizationFactory.create(id=KEY)
    ApiKey.objects.create(id=KEY, organization=organization, mode="live", name="Till", digest="0" * 64)
    PaymentFactory.create(id="pt_1", organization=organization, customer_id="ct_1")
    PaymentFactory.create_batch(2, organization=organization, customer_id="ct_1")
    User.objects.create_user("owner", id=KEY)


def create_staff(name: str, *codenames: str, organizations: Iterable[int] | None = None) -> User:
    """Create a user with permissions who sees these organizations; for None, all."""
    user = User.objects.create_user(name, is_staff=True)
    names = [*codenames, *(["all_organizations"] if organizations is None else [])]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    StaffOrganization.objects.bulk_create(
        StaffOrganization(user=user, organization_id=number) for number in organizations or ()
    )
    return user


def url_patterns() -> list[str]:
    """Return all URLs of the admin, such as `payments/payment/<path:object_id>/change/`."""
    patterns, _, _ = admin.site.urls
    return list(flatten(patterns))


def flatten(patterns: Iterable[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    for pattern in patterns:
        path = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from flatten(pattern.url_patterns, path)
        else:
            yield path


def fill(url_pattern: str, argument: Callable[[str], str]) -> str:
    """Return a path: the pattern with an argument for each name."""
    path = PARAMETER.sub(lambda match: argument(match[1] or match[2]), url_pattern)
    return f"/admin/{path.strip('^$')}"


def paths() -> list[str]:
    """Return a path of each URL, with the keys of `create_objects`."""
    return [fill(pattern, partial(existing_argument, pattern)) for pattern in url_patterns()]


def existing_argument(url_pattern: str, name: str) -> str:
    if name in ARGUMENTS:
        return ARGUMENTS[name]
    return "pt_5F1" if url_pattern.startswith("payments/payment/") else str(KEY)


def paths_with(argument: str) -> list[str]:
    """Return a path of each URL that has arguments, with the same value for all of them."""
    return [fill(pattern, lambda name: argument) for pattern in url_patterns() if PARAMETER.search(pattern)]


class Request(NamedTuple):
    """A request. The query string and the form are encoded."""

    path: str
    query: str = ""
    form: str = ""
    method: str = "GET"


class Staff(NamedTuple):
    """A user in a session."""

    user: User
    session: str

    @classmethod
    def log_in(cls, user: User) -> Self:
        client = Client()
        client.force_login(user)
        return cls(user, client.cookies[settings.SESSION_COOKIE_NAME].value)

    def send(self, request: Request) -> "Response":
        """Send a request and roll back its changes."""
        client = Client(raise_request_exception=False)
        client.cookies[settings.SESSION_COOKIE_NAME] = self.session
        reset_queries()
        with CaptureQueriesContext(connection) as queries, transaction.atomic():
            response = client.generic(
                request.method,
                request.path,
                request.form,
                content_type="application/x-www-form-urlencoded",
                QUERY_STRING=request.query,
            )
            transaction.set_rollback(True)
        return Response(request, response.status_code, [str(query["sql"]) for query in queries], self.may_view_payments)

    @property
    def may_view_payments(self) -> bool:
        return any(map(self.user.has_perm, VIEW_PAYMENTS))


class Response(NamedTuple):
    """The response to a request: its status and the statements that it ran."""

    request: Request
    status: int
    statements: Sequence[str]
    may_view_payments: bool

    def faults(self) -> list[str]:
        """Return what is wrong: a server error, statements on payments that are forbidden or unbounded."""
        faults = [f"status {self.status}"] if self.status >= HTTPStatus.INTERNAL_SERVER_ERROR else []
        faults += [statement for statement in self.statements if not self.is_allowed(statement)]
        return [f"{fault:.500} after {self.request}" for fault in faults]

    def is_allowed(self, statement: str) -> bool:
        """Return whether a statement reads no payments, or may read them and reads few."""
        if self.request.path == READS_PAGE and ONE_PAYMENT in statement:
            return True  # it finds the reads of a payment
        return PAYMENTS_TABLE not in statement or (self.may_view_payments and is_bounded(statement, self.request.path))


def is_bounded(statement: str, path: str) -> bool:
    """Return whether a statement reads one payment, those of a page, or those of some days."""
    is_of_days = SOME_DAYS.search(statement) is not None
    if path == START_PAGE:
        return is_of_days or statement.endswith(NEWEST) or ANY_OF_ORGANIZATION.fullmatch(statement) is not None
    is_short = is_of_days or LIMIT in statement or ONE_PAYMENT in statement
    return is_short and path.startswith((PAYMENT_PAGES, ORGANIZATION_PAGE, "/admin/report/"))
