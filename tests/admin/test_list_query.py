"""The links of the payment list: each keeps the search, and a chip removes one filter."""

import pytest
from django.http import QueryDict

from payments.admin.payments.form import SearchForm
from payments.admin.payments.query import chips, list_query
from payments.admin.periods import current_day
from payments.admin.scope import EVERYTHING
from tests.support.factories import OrganizationFactory


def search_form(query: str) -> SearchForm:
    OrganizationFactory.create(id=1)
    form = SearchForm.from_query(QueryDict(query), scope=EVERYTHING)
    assert form.is_valid(), form.errors
    return form


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "organization=1&mode=live"),
        ("organization=1&mode=test&from=pt_1&q=&status=failed", "organization=1&mode=test&status=failed"),
        ("q=a+b&unknown=1&mode=live", "organization=1&mode=live&q=a+b"),
        (f"q=lamp&q=&sort=desc&period=7d&period=&today={current_day()}", "organization=1&mode=live"),
        ("method=ideal,eps&method=ideal&sort=asc", "organization=1&mode=live&method=ideal&method=eps&sort=asc"),
    ],
)
def test_query_has_the_filled_in_fields(db: None, query: str, expected: str) -> None:
    assert sorted(list_query(search_form(query)).urlencode().split("&")) == sorted(expected.split("&"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=84820&sort=asc", []),
        (
            "amount_min=5&currency=EUR,USD",
            [
                ("Currency: EUR", "currency=USD&amount_min=5"),
                ("Currency: USD", "currency=EUR&amount_min=5"),
                ("Smallest amount: 5.00", "currency=EUR&currency=USD"),
            ],
        ),
        ("status=failed", [("Status: Failed", "")]),
        ("status=failed&status=open", [("Status: Failed", "status=open"), ("Status: Open", "status=failed")]),
        ("method=ideal,eps", [("Method: iDEAL", "method=eps"), ("Method: EPS", "method=ideal")]),
        ("currency=eur", [("Currency: EUR", "")]),
        ("period=7d", [("Created: last 7 days", "")]),
        ("period=custom&since=2026-01-02", [("Created: since 2 January 2026", "")]),
        ("since=2026-01-02&until=2026-01-03", [("Created: from 2 to 3 January 2026", "")]),
        ("until=2026-01-02&by=paid&q=7", [("Paid: until 2 January 2026", "q=7")]),
        ("by=paid&q=7", []),
        (
            "amount_min=5&currency=EUR",
            [("Currency: EUR", ""), ("Smallest amount: 5.00", "currency=EUR")],
        ),
        ("sequence=first&sort=asc", [("Type: First of a series", "sort=asc")]),
    ],
)
def test_chip_leads_to_the_list_without_its_filter(db: None, query: str, expected: list[tuple[str, str]]) -> None:
    form = search_form(query)

    access = "organization=1&mode=live"
    result = [(chip.text, chip.query.removeprefix(access).removeprefix("&")) for chip in chips(form)]

    assert [(text, sorted(query.split("&"))) for text, query in sorted(result)] == [
        (text, sorted(query.split("&"))) for text, query in sorted(expected)
    ]
    assert all(SearchForm.from_query(QueryDict(chip.query), scope=EVERYTHING).is_valid() for chip in chips(form))
