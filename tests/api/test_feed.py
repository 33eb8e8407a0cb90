"""GET /v2/payments/changes."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.listing.tokens import FeedPosition, Newest, format_token
from payments.models import AccessState, Change, Organization, Payment
from payments.models.access_state import new_change_id
from tests.support.api import Api, payment_ids
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.revisions import restore, revisions
from tests.support.sql import execute, key_and_revision, tables_read

pytestmark = pytest.mark.also("citus")

FEED = "/v2/payments/changes"
MALFORMED = "from must be a token from a link of your changes, or now."


@pytest.fixture
def payments(organization: Organization) -> None:
    """A, B and C, changed in this order."""
    for name in "ABC":
        PaymentFactory.create(id=f"pt_{name}", organization=organization)


def hal_link(href: str) -> dict[str, str]:
    return {"href": href, "type": "application/hal+json"}


def later(page: Any) -> str:
    return str(page["_links"]["later"]["href"])


def read_to_end(api: Api, href: str = f"{FEED}?limit=2") -> list[Any]:
    return api.walk("next", api.follow(href).json())


def test_page_has_the_payments_and_links_of_the_feed(api: Api, payments: None) -> None:
    page = api.get(FEED, limit=2).json()

    newest = AccessState.objects.get()
    position = FeedPosition(1, "live", Newest(0, 3, newest.change_id), number=2, after="pt_B")
    next_page = hal_link(f"http://testserver{FEED}?limit=2&from={format_token(position)}")
    assert list(page) == ["count", "_embedded", "_links"]
    assert (page["count"], payment_ids(page)) == (2, ["pt_A", "pt_B"])
    assert list(page["_links"].items()) == [
        ("self", hal_link(f"http://testserver{FEED}?limit=2")),
        ("next", next_page),
        ("later", next_page),
        ("documentation", {"href": "http://testserver/docs/reference/#list-changes", "type": "text/html"}),
    ]
    assert page["_embedded"]["payments"] == [api.get(f"/v2/payments/pt_{name}").json() for name in "AB"]


def test_last_page_has_later_but_no_next(api: Api, payments: None) -> None:
    page = api.get(FEED).json()

    assert payment_ids(page) == ["pt_A", "pt_B", "pt_C"]
    assert "next" not in page["_links"]
    assert api.follow(later(page)).json()["count"] == 0


def test_self_repeats_the_request(api: Api, payments: None) -> None:
    href = later(api.get(FEED, limit=2).json())

    assert api.follow(href).json()["_links"]["self"]["href"] == href


@pytest.mark.parametrize("start", [{}, {"from": "now"}])
def test_feed_without_payments_leads_to_the_first_ones(api: Api, start: dict[str, str]) -> None:
    empty = api.get(FEED, **start).json()
    PaymentFactory.create(id="pt_A", organization=api.key.organization)

    assert (empty["count"], empty["_links"].keys()) == (0, {"self", "later", "documentation"})
    assert payment_ids(api.follow(later(empty)).json()) == ["pt_A"]


def test_now_is_the_end_of_the_feed(api: Api, payments: None) -> None:
    now = api.get(FEED, from_="now").json()
    Payment.objects.filter(id="pt_B").update(description="changed")

    assert now["_links"]["self"]["href"] == f"http://testserver{FEED}?limit=20&from=now"
    assert (now["count"], "next" in now["_links"]) == (0, False)
    assert payment_ids(api.follow(later(now)).json()) == ["pt_B"]


def test_changed_payment_moves_to_the_end(api: Api, payments: None) -> None:
    end = later(read_to_end(api)[-1])
    Payment.objects.filter(id="pt_A").update(description="changed")

    changed = api.follow(end).json()
    assert [(payment["id"], payment["description"]) for payment in changed["_embedded"]["payments"]] == [
        ("pt_A", "changed")
    ]
    assert payment_ids(*read_to_end(api)) == ["pt_B", "pt_C", "pt_A"]


def test_payment_that_moves_before_it_was_read_is_read_once(api: Api, payments: None) -> None:
    first = api.get(FEED, limit=1).json()
    Payment.objects.filter(id="pt_B").update(description="changed")

    assert payment_ids(*api.walk("next", first)) == ["pt_A", "pt_C", "pt_B"]


def test_page_may_start_within_a_change(api: Api, organization: Organization) -> None:
    ids = [f"pt_{number:03}" for number in range(300)]
    Payment.objects.bulk_create([PaymentFactory.build(id=name, organization=organization) for name in ids])

    assert payment_ids(*read_to_end(api, f"{FEED}?limit=7")) == ids


def test_run_of_empty_changes_gives_empty_pages(api: Api, organization: Organization) -> None:
    """A page reads at most 1,000 changes."""
    PaymentFactory.create(id="pt_A", organization=organization)
    AccessState.objects.record({api.key.access: [new_change_id() for _ in range(2000)]}, days={})
    Payment.objects.update(description="changed")

    pages = read_to_end(api)

    assert [page["count"] for page in pages] == [0, 0, 1]
    assert pages[2]["_embedded"]["payments"][0]["description"] == "changed"


def test_feed_has_only_payments_of_the_key(api: Api, payments: None, client: Client) -> None:
    other = OrganizationFactory.create(id=2)
    PaymentFactory.create(id="pt_D", organization=other)
    PaymentFactory.create(id="pt_E", organization=api.key.organization, mode="test")
    keys = [
        ApiKeyFactory.create(organization=other),
        ApiKeyFactory.create(organization=api.key.organization, test=True),
    ]

    read = [payment_ids(*read_to_end(Api(client, key))) for key in (api.key, *keys)]

    assert read == [["pt_A", "pt_B", "pt_C"], ["pt_D"], ["pt_E"]]


def test_token_of_another_organization_or_mode_gets_the_error_of_a_malformed_one(api: Api, client: Client) -> None:
    keys = [
        ApiKeyFactory.create(organization=OrganizationFactory.create(id=2)),
        ApiKeyFactory.create(organization=api.key.organization, test=True),
    ]
    hrefs = [later(Api(client, key).get(FEED).json()) for key in keys]

    responses = [api.follow(href) for href in (*hrefs, f"{FEED}?from=x")]

    assert {response.status_code for response in responses} == {400}
    assert len({response.content for response in responses}) == 1
    assert (responses[0].json()["field"], responses[0].json()["detail"]) == ("from", MALFORMED)


def test_token_that_the_database_does_not_know_is_gone(api: Api, payments: None) -> None:
    href = later(api.get(FEED, limit=1).json())
    restore(2)

    response = api.follow(href)

    assert response.status_code == 410
    assert response["Content-Type"] == "application/problem+json"
    assert response.json() == {
        "type": "about:blank",
        "title": "Gone",
        "status": 410,
        "detail": "The service does not know all changes since this token. Discard your copy, and read the changes "
        "again from the beginning, without from.",
        "requestId": "tests-1",
        "_links": {"documentation": {"href": "http://testserver/docs/reference/#errors", "type": "text/html"}},
    }


def test_change_with_the_same_number_after_a_restore_is_another_one(api: Api, payments: None) -> None:
    href = later(api.get(FEED).json())
    restore(2)
    Payment.objects.filter(id="pt_A").update(description="changed")

    assert Change.objects.filter(number=3).exists()
    assert api.follow(href).status_code == 410


def test_first_change_after_all_were_lost_is_another_one(api: Api, organization: Organization) -> None:
    PaymentFactory.create(id="pt_A", organization=organization)
    href = later(api.get(FEED).json())
    for table in ("payments_payment", "payments_change", "payments_accessstate"):
        execute(f"DELETE FROM {table}")  # noqa: S608  a name of this test
    PaymentFactory.create(id="pt_B", organization=organization)

    assert Change.objects.get().number == 1
    assert api.follow(href).status_code == 410


def test_token_that_names_an_older_newest_change_stays_valid(api: Api, payments: None) -> None:
    href = later(api.get(FEED, limit=1).json())
    Payment.objects.filter(id="pt_A").update(description="changed")

    assert payment_ids(api.follow(href).json()) == ["pt_B"]


def test_payment_that_a_restore_moves_back_is_not_missed(api: Api, payments: None) -> None:
    """A client has passed the place to which the restored database moves the payment A."""
    Payment.objects.filter(id="pt_A").update(description="changed")
    first = api.get(FEED, limit=1).json()
    restore(3)

    assert payment_ids(first) == ["pt_B"]
    assert api.follow(later(first)).status_code == 410


def test_change_by_sql_makes_tokens_unknown(api: Api, payments: None) -> None:
    """SQL renews the revision, but does not number its changes."""
    href = later(api.get(FEED, limit=1).json())
    execute("UPDATE payments_payment SET description = 'changed' WHERE id = 'pt_A'")
    AccessState.objects.update(revision=7)

    assert api.follow(href).status_code == 410
    first = api.get(FEED, limit=1).json()
    assert first["_embedded"]["payments"][0]["description"] == "changed"
    Payment.objects.filter(id="pt_B").update(description="changed")
    assert payment_ids(*api.walk("next", first)) == ["pt_A", "pt_C", "pt_B"]


def test_unchanged_feed_gets_304_from_the_revision_alone(api: Api, payments: None) -> None:
    href = later(api.get(FEED).json())
    etag = api.follow(href)["ETag"]

    with CaptureQueriesContext(connection) as queries:
        known = api.send("GET", href, If_None_Match=etag)

    assert (known.status_code, known.content) == (304, b"")
    assert tables_read(queries) == key_and_revision()
    Payment.objects.filter(id="pt_A").update(description="changed")
    assert api.send("GET", href, If_None_Match=etag).status_code == 200


def test_lists_and_feed_have_different_etags(api: Api) -> None:
    assert api.get()["ETag"] != api.get(FEED)["ETag"]


def test_feed_has_the_revision_of_its_payments(api: Api, payments: None) -> None:
    assert revisions()[api.key.access] == Change.objects.latest("number").change_id
