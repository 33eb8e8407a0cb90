"""Statements are compiled once for each shape of a request, and refuse what cannot be compiled."""

import cProfile
import pstats
from collections.abc import Callable

import pytest
from django.db import connection

from payments.database.statements import Placeholder, compile_queryset
from payments.listing.filters import parse_selection
from payments.listing.page import evaluate_page, fetch_page
from payments.listing.query import Listing, select
from payments.models import Access, Organization, Payment
from payments.rows import named
from tests.support.api import Api
from tests.support.factories import PaymentFactory
from tests.support.lists import noon_plus

pytestmark = pytest.mark.django_db


def compiler_calls(function: Callable[[], object]) -> set[str]:
    """Return the functions of Django's SQL compiler that run."""
    profile = cProfile.Profile()
    profile.runcall(function)
    functions = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return {name for file, _, name in functions if file.endswith("django/db/models/sql/compiler.py")}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path",
    [
        "/v2/payments",
        "/v2/payments?from=pt_1",
        "/v2/payments?status=open&metadata[a]=b",
        "/v2/payments/changes",
        "/v2/payments/pt_1",
    ],
)
def test_repeated_request_compiles_nothing(api: Api, path: str) -> None:
    for _ in range(2):
        api.get(path)

    assert not compiler_calls(lambda: api.get(path))
    assert compiler_calls(Payment.objects.exists)


@pytest.mark.django_db(transaction=True)
def test_request_works_on_a_new_connection(api: Api) -> None:
    before = api.get()
    connection.close()

    assert (before.status_code, api.get().status_code) == (200, 200)


CANNOT_BE_COMPILED = "Only placeholders and columns without a converter can be compiled: SELECT"


def test_value_without_a_placeholder_is_refused() -> None:
    with pytest.raises(ValueError, match=CANNOT_BE_COMPILED):
        compile_queryset(Payment.objects.filter(id="pt_1").values_list("id"))


@pytest.mark.only("sqlite")
def test_column_with_a_converter_is_refused() -> None:
    with pytest.raises(ValueError, match=CANNOT_BE_COMPILED):
        compile_queryset(Payment.objects.filter(id=Placeholder("id")).values_list("created_at", "amount"))


@pytest.mark.parametrize("sort", ["desc", "asc"])
@pytest.mark.parametrize("filters", [{}, {"status": "open"}, {"currency": "EUR", "amount[gte]": "5"}])
@pytest.mark.parametrize("start", [None, "pt_3", "pt_7"])
def test_compiled_statement_reads_what_the_orm_evaluates(
    organization: Organization, sort: str, filters: dict[str, str], start: str | None
) -> None:
    for number in range(10):
        status = "open" if number % 3 else "succeeded"
        PaymentFactory.create(
            id=f"pt_{number}", organization=organization, created_at=noon_plus(number // 2), status=status
        )
    listing = Listing(Access(organization.pk, "live"), parse_selection({**filters, "sort": sort}))
    payments = Payment.objects.visible_to(listing.access)
    selected = select(payments, listing.selection.filters)

    compiled = fetch_page(listing, start=start, limit=4)
    evaluated = evaluate_page(selected, within=payments, start=start, limit=4, order=listing.selection.order)

    assert [named(row).id for row in compiled.rows] == [payment.id for payment in evaluated.rows]
    assert compiled._replace(rows=[]) == evaluated._replace(rows=[])
    assert compiled.rows
