"""After a read of payments has failed slowly, reads of the same payments fail fast for a while."""

import pytest
from django.db import Error, OperationalError, ProgrammingError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.models import Organization
from tests.support.api import Api
from tests.support.factories import ApiKeyFactory, OrganizationFactory
from tests.support.list_errors import failing_list_queries, failing_queries, failing_statements, timeout_error
from tests.support.sql import PAYMENT, tables_read

pytestmark = pytest.mark.once

OUTAGE = OperationalError("the server does not respond")


@pytest.mark.parametrize("error", [OUTAGE, timeout_error()], ids=["outage", "timeout"])
def test_requests_fail_fast_after_an_outage(api: Api, failing_fast: None, error: Error) -> None:
    with failing_list_queries(error):
        outage = api.get()
    with CaptureQueriesContext(connection) as queries:
        following = api.get()

    assert (outage.status_code, following.status_code) == (503, 503)
    assert following.json() == outage.json()
    assert following["Retry-After"] == "1"
    assert PAYMENT not in set().union(*tables_read(queries))


def test_outage_of_one_organization_does_not_fail_others(client: Client, api: Api, failing_fast: None) -> None:
    other = Api(client, ApiKeyFactory.create(organization=OrganizationFactory.create(id=2), mode="live"))
    with failing_list_queries(OUTAGE):
        api.get()

    assert (api.get().status_code, other.get().status_code) == (503, 200)


def test_requests_fail_fast_after_an_outage_of_keys(api: Api, failing_fast: None) -> None:
    with failing_queries("payments_apikey", OUTAGE):
        outage = api.get()
    with CaptureQueriesContext(connection) as queries:
        following = api.get()

    assert (outage.status_code, following.status_code) == (503, 503)
    assert len(queries) == 0


def test_short_outage_does_not_fail_later_requests(api: Api) -> None:
    with failing_list_queries(OperationalError("the connection is closed")):
        assert api.get().status_code == 503

    assert api.get().status_code == 200


def test_timeout_of_a_filter_does_not_fail_later_requests(api: Api, failing_fast: None) -> None:
    with failing_list_queries(timeout_error()):
        assert api.get(status="open").status_code == 503

    assert api.get().status_code == 200


@pytest.mark.once("sqlite", "postgresql")
@pytest.mark.parametrize("path", ["/v2/payments", "/v2/payments/changes"])
def test_timeout_of_one_read_does_not_fail_others(
    client: Client, api: Api, failing_fast: None, path: str, organization: Organization
) -> None:
    """The client has caused it: a read of one payment succeeds at once."""
    other = Api(client, ApiKeyFactory.create(organization=organization, mode="live"))
    with failing_statements("LIMIT 251", timeout_error()):
        assert api.get(path, limit=250).status_code == 503

    assert (api.get(path).status_code, other.get(path).status_code) == (200, 200)


def test_wrong_statement_does_not_fail_later_requests(api: Api, failing_fast: None) -> None:
    with failing_list_queries(ProgrammingError("a bug")), pytest.raises(ProgrammingError):
        api.get()

    assert api.get().status_code == 200
