"""The errors of the contract (section 5), with status, document and headers."""

import logging
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from payments.models import Organization
from tests.support.api import Api
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.list_errors import TIMEOUT, failing_list_queries, timeout_error
from tests.support.problem import assert_problem, problem

pytestmark = pytest.mark.also("citus")

LIMIT = "limit must be a whole number from 1 to 250."
START = "from must be the ID of one of your payments."
MANY = "Send at most 200 parameters."
UNKNOWN = "Unknown parameter."
UNAVAILABLE = "The service is unavailable. Try again later."


@pytest.mark.parametrize(
    ("query", "detail", "field"),
    [
        *(
            (f"limit={text}", LIMIT, "limit")
            for text in ("", "0", "251", "1000", "-1", "%2B5", "05", "1.0", "1e1", "1_0", "abc", "%205", "5%20", "5%0A")
        ),
        *((f"limit={text}", LIMIT, "limit") for text in ("9" * 5000, "%00", "%D9%A5", "%FF", "null", "5;from=pt_A")),
        *(
            (f"from={text}", START, "from")
            for text in ("", "pt_", "tr_A", "PT_A", "A", "pt_A%0A", "%20pt_A", "pt_%00", "pt_%FF", "pt_" + "A" * 62)
        ),
        *(
            (f"from={text}", START, "from")
            for text in ("pt_unknown", "pt_other", "pt_test", "pt_own%27--", "pt_%C3%A9")
        ),
        ("limit=5&limit=5", "limit must occur only once.", "limit"),
        ("limit=abc" + "&x=1" * 200, MANY, None),
        ("&" * 200, MANY, None),
        ("&" * 198 + "limit=abc", LIMIT, "limit"),
        ("from=pt_own&from=pt_own", "from must occur only once.", "from"),
        ("Limit=5", UNKNOWN, "Limit"),
        ("format=json", UNKNOWN, "format"),
        ("page=2", UNKNOWN, "page"),
        ("limit[]=5", UNKNOWN, "limit[]"),
        ("_=1700000000000", UNKNOWN, "_"),
        ("$filter=amount", UNKNOWN, "$filter"),
        ("status=open&limit=abc", LIMIT, "limit"),
        ("limit=abc&from=pt_unknown", LIMIT, "limit"),
        ("from=pt_unknown&limit=abc", LIMIT, "limit"),
        ("from=pt_unknown&sort=abc", START, "from"),
        ("from=pt_own&sort=abc", "sort must be desc or asc.", "sort"),
        # The error does not repeat names that are long or not plain.
        ("=1", UNKNOWN, None),
        ("%00=1", UNKNOWN, None),
        ("x" * 33 + "=1", UNKNOWN, None),
        ("live_0123456789abcdefghijABCDEFGHIJ0123456789=1", UNKNOWN, None),
        ("%3Cscript%3E=1", UNKNOWN, None),
    ],
)
def test_invalid_parameter_of_the_list_is_refused_by_name(
    api: Api, organization: Organization, query: str, detail: str, field: str | None
) -> None:
    PaymentFactory.create(id="pt_own", organization=organization)
    PaymentFactory.create(id="pt_test", organization=organization, test=True)
    PaymentFactory.create(id="pt_other", organization=OrganizationFactory.create(id=2))

    response = api.send("GET", f"/v2/payments?{query}")

    assert_problem(response, problem(400, "Bad Request", detail, field=field))


def test_foreign_and_unknown_starts_get_the_same_response(api: Api, organization: Organization) -> None:
    PaymentFactory.create(id="pt_test", organization=organization, test=True)
    PaymentFactory.create(id="pt_other", organization=OrganizationFactory.create(id=2))

    responses = [api.get(from_=name) for name in ("pt_test", "pt_other", "pt_unknown", "nonsense")]

    assert len({(response.content, tuple(response.items())) for response in responses}) == 1


@pytest.mark.parametrize("query", ["limit=1", "from=pt_own", "x=", "format=hal"])
def test_record_takes_no_parameters(api: Api, organization: Organization, query: str) -> None:
    PaymentFactory.create(id="pt_own", organization=organization)

    response = api.send("GET", f"/v2/payments/pt_own?{query}")

    assert_problem(response, problem(400, "Bad Request", UNKNOWN, field=query.partition("=")[0]))


@pytest.mark.parametrize("debug", [False, True])
def test_many_unknown_parameters_are_refused_by_the_first(api: Api, settings: Settings, debug: bool) -> None:
    settings.DEBUG = debug

    response = api.send("GET", "/v2/payments?" + "&".join(f"p{number}=" for number in range(200)))

    assert_problem(response, problem(400, "Bad Request", UNKNOWN, field="p0"))


@pytest.mark.parametrize(
    "path",
    [
        "/v2",
        "/v2/",
        "/v2/payments/",
        "/v2/payments/pt_1/",
        "/v2/refunds",
        "/v2/payments/a/b",
        "/v2/payments/pt_1%2F",
        "/v2//",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_path_is_a_problem(api: Api, path: str, method: str) -> None:
    response = api.send(method, path)

    assert_problem(response, problem(404, "Not Found", "Not found. Check the path and the ID."))


def test_unknown_payment_is_not_found(api: Api) -> None:
    assert_problem(api.get("/v2/payments/pt_1"), problem(404, "Not Found", "Not found. Check the path and the ID."))


@pytest.mark.parametrize("path", ["/v2/payments", "/v2/payments/pt_1"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])
def test_other_methods_are_refused_with_the_allowed_ones(api: Api, path: str, method: str) -> None:
    response = api.send(method, path)

    assert_problem(response, problem(405, "Method Not Allowed", "Only GET, HEAD and OPTIONS are allowed."))
    assert response["Allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ["/v2/payments", "/v2/payments/pt_1"])
def test_options_needs_no_key(client: Client, db: None, path: str) -> None:
    response = client.options(path)

    assert response.status_code == 200
    assert response["Allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize(
    ("method", "query", "headers", "status"),
    [
        ("POST", "limit=x", {"Accept": "text/html", "Authorization": ""}, 406),
        ("POST", "limit=x", {"Authorization": ""}, 401),
        ("POST", "limit=x", {}, 405),
        ("GET", "limit=x", {}, 400),
    ],
)
def test_first_error_is_reported(api: Api, method: str, query: str, headers: dict[str, str], status: int) -> None:
    assert api.send(method, f"/v2/payments?{query}", **headers).status_code == status


@pytest.mark.parametrize("path", ["/v2/payments", "/v2/payments/pt_1"])
def test_outage_of_the_database_is_a_503_with_retry_after(api: Api, path: str) -> None:
    def fail(*_args: Any) -> None:
        raise OperationalError("the connection is closed")

    with connection.execute_wrapper(fail):
        response = api.get(path)

    assert_problem(response, problem(503, "Service Unavailable", UNAVAILABLE))
    assert response["Retry-After"] == "1"


@pytest.mark.parametrize(
    ("error", "filters", "detail", "field"),
    [
        (timeout_error(), {"status": "open"}, TIMEOUT, "createdAt"),
        (timeout_error(), {}, UNAVAILABLE, None),
        (OperationalError("the connection is closed"), {"status": "open"}, UNAVAILABLE, None),
    ],
)
def test_only_a_timeout_with_filters_names_created_at(
    api: Api, error: Exception, filters: dict[str, str], detail: str, field: str | None
) -> None:
    with failing_list_queries(error):
        response = api.get(**filters)

    assert_problem(response, problem(503, "Service Unavailable", detail, field=field))


def test_bug_is_a_500_without_details_and_is_logged(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    api.client.raise_request_exception = False

    logging.getLogger("django.request").addHandler(caplog.handler)
    try:
        with failing_list_queries(ZeroDivisionError()):
            response = api.get()
    finally:
        logging.getLogger("django.request").removeHandler(caplog.handler)

    assert "ZeroDivisionError" in caplog.text
    expected = problem(500, "Internal Server Error", "An internal error occurred. The service's log has the details.")
    assert_problem(response, expected)


def test_unknown_path_outside_the_api_is_an_html_page(client: Client, db: None) -> None:
    response = client.get("/nothing", headers={"Accept": "text/html"})

    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/v2/refunds", "/v2/%0A"])
def test_unknown_path_is_a_problem_in_development(api: Api, settings: Settings, path: str) -> None:
    settings.DEBUG = True

    assert_problem(api.get(path), problem(404, "Not Found", "Not found. Check the path and the ID."))


def test_invalid_parameters_cost_no_query_of_payments(api: Api) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get(limit="x", from_="pt_1")

    assert not any('FROM "payments_payment"' in query["sql"] for query in queries)
