"""Reads of payments by staff are recorded, and administrators can list them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from payments.admin.base import PAGE_RECORDS
from payments.models import Organization, Payment, PaymentRead
from payments.models.staff import BATCH_READS
from tests.support.admin_site import create_staff
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.threads import held_lock

pytestmark = pytest.mark.also("citus")

PAYMENTS = "/admin/payments/payment/"
PAGE = f"{PAYMENTS}pt_5F1/change/"
LIST = "/admin/payments/paymentread/"


@pytest.fixture
def payment(db: None) -> Payment:
    return PaymentFactory.create(id="pt_1", organization=OrganizationFactory.create(id=7))


def client_with(*codenames: str) -> Client:
    client = Client()
    client.force_login(create_staff("clerk", *codenames))
    return client


def create_reads(count: int, **values: Any) -> None:
    defaults = {"read_at": timezone.now(), "user_id": "1", "user_name": "clerk", "organization_id": 7, "mode": "live"}
    defaults |= {"kind": "payment", "count": 1}
    PaymentRead.objects.bulk_create(
        PaymentRead(**{**defaults, "first_id": f"pt_{number}", **values}) for number in range(count)
    )


def listed(page: Any) -> list[str]:
    """Return the IDs of the payments on a page, in its order."""
    return re.findall(r'class="id"><a href="[^"]+">(pt_\w+)</a>', page.content.decode())


def recorded(*names: str) -> tuple[Any, ...]:
    """Return values of the only record."""
    [values] = PaymentRead.objects.values_list(*names)
    return tuple(values)


def test_view_of_a_payment_is_recorded(payment: Payment) -> None:
    client = client_with("view_payment")
    before = timezone.now()

    client.get(PAGE)

    read = PaymentRead.objects.get()
    assert before <= read.read_at <= timezone.now()
    assert (read.user_id, read.user_name) == (str(User.objects.get().pk), "clerk")
    assert (read.kind, read.organization_id, read.mode, read.filters) == ("payment", 7, "live", "")
    assert (read.count, read.first_id, read.last_id) == (1, "pt_1", "pt_1")
    assert read.oldest_at == read.newest_at == payment.created_at


def test_customers_payments_beside_a_payment_are_recorded(payment: Payment) -> None:
    for number in (1, 2, 3):
        PaymentFactory.create(id=f"pt_c{number}", organization=payment.organization, customer_id="ct_1")

    client_with("view_payment").get(f"{PAYMENTS}pt_5Fc2/change/")

    reads = PaymentRead.objects.order_by("id").values_list("kind", "filters", "count", "first_id", "last_id")
    assert list(reads) == [("payment", "", 1, "pt_c2", "pt_c2"), ("list", "customerId", 2, "pt_c3", "pt_c1")]


@pytest.mark.parametrize("path", ["", "export.csv", "export.jsonl"])
@pytest.mark.parametrize(
    ("query", "filters", "ids"),
    [
        ({}, "", ["pt_3", "pt_2", "pt_1"]),
        ({"sort": "asc", "from": "pt_2"}, "", ["pt_2", "pt_3"]),
        ({"q": "secret", "status": "succeeded"}, "search, status", []),
        ({"period": "custom", "since": "1999-01-01", "method": "a"}, "since, method", []),
    ],
)
def test_list_and_export_are_recorded(
    payment: Payment, path: str, query: dict[str, str], filters: str, ids: list[str]
) -> None:
    """The names of filters are recorded, but not their values."""
    times = {"pt_1": payment.created_at}
    for number in (2, 3):
        time = times[f"pt_{number}"] = payment.created_at + timedelta(days=number)
        PaymentFactory.create(id=f"pt_{number}", organization=payment.organization, created_at=time)

    client_with("view_payment").get(PAYMENTS + path, query)

    assert recorded("kind", "filters", "count") == ("export" if path else "list", filters, len(ids))
    assert recorded("first_id", "last_id") == ((ids[0], ids[-1]) if ids else ("", ""))
    assert recorded("oldest_at", "newest_at") == (
        tuple(sorted((times[ids[0]], times[ids[-1]]))) if ids else (None, None)
    )


@pytest.mark.parametrize("path", ["", "export.csv"])
@pytest.mark.parametrize("query", [{"from": "pt_9"}, {"status": "unknown"}, {"q": "pt_1"}])
def test_list_that_shows_no_payments_because_of_an_error_is_not_recorded(
    payment: Payment, path: str, query: dict[str, str]
) -> None:
    client_with("view_payment").get(PAYMENTS + path, query)

    assert not PaymentRead.objects.exists()


def test_each_view_is_recorded(admin_client: Client, payment: Payment) -> None:
    admin_client.get(PAGE)
    admin_client.get(PAGE)

    assert PaymentRead.objects.count() == 2


def test_refused_view_is_not_recorded(payment: Payment) -> None:
    response = client_with("view_organization").get(PAGE)

    assert response.status_code == 403
    assert not PaymentRead.objects.exists()


def test_record_outlives_its_user(payment: Payment) -> None:
    client_with("view_payment").get(PAGE)

    User.objects.all().delete()

    assert PaymentRead.objects.get().user_name == "clerk"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("path", "line"),
    [
        (PAGE, "mode=live, count=1, first_id=pt_1, last_id=pt_1, filters=:"),
        (f"{PAYMENTS}export.csv?q=secret", "mode=live, count=0, first_id=, last_id=, filters=search:"),
    ],
)
def test_page_does_not_wait_for_its_record(
    admin_client: Client, payment: Payment, caplog: pytest.LogCaptureFixture, path: str, line: str
) -> None:
    with held_lock("payments_paymentread") as holder:
        response = admin_client.get(path)
        was_released_first = not holder.is_alive()

    assert response.status_code == 200
    assert not was_released_first
    assert not PaymentRead.objects.exists()
    assert line in caplog.text
    assert "secret" not in caplog.text


def test_list_shows_a_read_with_a_link_to_the_payment(admin_client: Client, payment: Payment) -> None:
    Organization.objects.update(time_zone="Asia/Kathmandu")
    create_reads(1, read_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), first_id="pt_1", last_id="pt_1")

    page = admin_client.get(LIST).content.decode()

    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "2026-01-02 08:49:05 clerk Page of the payment Organization 7 live 1 pt_1" in text
    assert f'<a href="{PAGE}">pt_1</a>' in page


def test_links_lead_through_all_reads_newest_first(admin_client: Client) -> None:
    create_reads(2 * PAGE_RECORDS + 1)
    create_reads(PAGE_RECORDS, user_name="baker")

    pages = [admin_client.get(LIST, {"user": "clerk"})]
    while match := re.search(r'<a href="([^"]+)" rel="next">', pages[-1].content.decode()):
        pages.append(admin_client.get(LIST + match[1].replace("&amp;", "&")))

    assert [len(listed(page)) for page in pages] == [PAGE_RECORDS, PAGE_RECORDS, 1]
    assert [name for page in pages for name in listed(page)] == [
        f"pt_{number}" for number in reversed(range(2 * PAGE_RECORDS + 1))
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["pt_2", "pt_1", "pt_1"]),
        ({"user": "baker"}, ["pt_1"]),
        ({"user": "bak"}, []),
        ({"payment": "pt_1"}, ["pt_1", "pt_1"]),
        ({"payment": "pt_1", "user": "clerk"}, ["pt_1"]),
    ],
)
def test_list_is_filtered_by_user_and_payment(admin_client: Client, query: dict[str, str], expected: list[str]) -> None:
    create_reads(1, first_id="pt_1", user_name="baker")
    create_reads(1, first_id="pt_1")
    create_reads(1, first_id="pt_2")

    assert listed(admin_client.get(LIST, query)) == expected


@pytest.mark.parametrize(
    ("days", "values", "is_found"),
    [
        ([-1, 1], {}, True),
        ([0, 0], {}, True),
        ([1, 2], {}, False),
        ([-2, -1], {}, False),
        ([-1, 1], {"organization_id": 8}, False),
        ([-1, 1], {"mode": "test"}, False),
        ([], {}, False),
    ],
)
def test_search_by_payment_finds_lists_that_reach_beyond_it(
    admin_client: Client, payment: Payment, days: list[int], values: dict[str, Any], is_found: bool
) -> None:
    times = (payment.created_at + timedelta(days=number) for number in days)
    ends = dict(zip(("oldest_at", "newest_at"), times, strict=False))
    create_reads(1, **{"kind": "list", "first_id": "pt_7", **ends, **values})

    assert listed(admin_client.get(LIST, {"payment": "pt_1"})) == (["pt_7"] if is_found else [])


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"payment": "84820"}, "Enter a payment ID: pt_..."),
        ({"user": "\0"}, "Null characters are not allowed."),
        ({"user": "x" * 151}, "at most 150 characters"),
        ({"before": "x"}, "Enter a whole number."),
        ({"before": str(2**63)}, "less than or equal to"),
    ],
)
def test_invalid_query_is_an_error(admin_client: Client, query: dict[str, str], error: str) -> None:
    create_reads(1)

    page = admin_client.get(LIST, query)

    assert page.status_code == 400
    assert error in page.content.decode()
    assert listed(page) == []


def test_list_needs_its_own_permission(payment: Payment) -> None:
    client = client_with("view_payment", "view_organization", "add_apikey")

    assert client.get(LIST).status_code == 403
    assert LIST not in client.get("/admin/").content.decode()


def test_permission_gives_access_to_the_list(payment: Payment) -> None:
    client = client_with("view_paymentread")

    assert client.get(LIST).status_code == 200
    assert LIST in client.get("/admin/").content.decode()


@pytest.mark.parametrize("path", ["add/", "1/change/", "1/delete/", "1/history/"])
def test_reads_have_no_other_pages(admin_client: Client, path: str) -> None:
    create_reads(1)

    assert admin_client.post(LIST + path, {"post": "yes"}).status_code == 404
    assert admin_client.post(LIST, {"action": "delete_selected", "_selected_action": "1"}).status_code == 403
    assert PaymentRead.objects.exists()


@pytest.mark.django_db
def test_command_deletes_old_reads_in_batches(capsys: pytest.CaptureFixture[str]) -> None:
    day = datetime(2026, 1, 2, tzinfo=UTC)
    create_reads(BATCH_READS + 1, read_at=day - timedelta(microseconds=1))
    create_reads(2, read_at=day)
    steps: list[int] = []

    deleted = PaymentRead.objects.delete_before(day - timedelta(days=1), on_progress=steps.append)
    call_command("delete_old_payment_reads", "--before", "2026-01-02")

    assert (deleted, steps) == (0, [])
    assert capsys.readouterr().err.endswith(f"{BATCH_READS + 1} reads deleted.\n")
    assert PaymentRead.objects.count() == 2


@pytest.mark.parametrize("day", ["2999-01-01", "yesterday"])
def test_command_refuses_other_days(day: str) -> None:
    with pytest.raises(CommandError, match="--before"):
        call_command("delete_old_payment_reads", "--before", day)
