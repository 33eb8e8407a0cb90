"""A response never carries a revision that is newer than its payments: it would stay unchanged for ever."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection

from payments.api.reading import RequestReads
from payments.database.round_trips import Query
from payments.models import Access, Organization
from tests.support.api import Api
from tests.support.factories import PaymentFactory
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

queries_for = RequestReads.queries_for


def content_first(reads: RequestReads, access: Access) -> Sequence[Query]:
    """A wrong `queries_for`: it reads the revision after the content."""
    return list(reversed(queries_for(reads, access)))


@pytest.fixture(params=[False, True])
def is_wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the wrong implementation is used."""
    if request.param:
        monkeypatch.setattr(RequestReads, "queries_for", content_first)
    return bool(request.param)


def read(api: Api) -> tuple[str, str]:
    """Return the ETag and the description of the first payment."""
    response = api.get()
    return response["ETag"], response.json()["_embedded"]["payments"][0]["description"]


def test_change_between_revision_and_content_is_noticed(api: Api, organization: Organization, is_wrong: bool) -> None:
    """A transaction that changes a payment commits while a request waits for the revision."""
    PaymentFactory.create(organization=organization, description="old")
    info = connection.connection.info
    with psycopg.connect(info.dsn, password=info.password) as writer, ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(read, api).result(timeout=60)  # now the key is known and the statements are prepared
        writer.execute("UPDATE payments_payment SET description = 'new'")
        writer.execute("UPDATE payments_accessstate SET revision = 5")
        writer.execute("LOCK TABLE payments_accessstate IN ACCESS EXCLUSIVE MODE")
        request = thread.submit(read, api)
        wait_until(lambda: writer.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (1,))
        writer.commit()
        etag, description = request.result(timeout=60)
        thread.submit(lambda: connection.close()).result(timeout=60)  # noqa: PLW0108  of that thread

    polled = api.send("GET", "/v2/payments", If_None_Match=etag)

    is_stale = polled.status_code == 304 and description == "old"
    assert is_stale == is_wrong
