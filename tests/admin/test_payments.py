"""The admin: payments to look into, nothing to lose."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from moneyed import Money

from payments.admin.scope import MENU_MAX
from payments.models import Access, Payment
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.filters import failing_to_list, timeout_error

LIST = "/admin/payments/payment/"


@pytest.fixture
def payment(db: None) -> Payment:
    return PaymentFactory.create(
        id="pt_1",
        organization=OrganizationFactory.create(id=1),
        description="Order 7",
        customer_id="ct_7",
        created_at=NOON,
    )


def listed(page: Any) -> list[str]:
    """Return the ids of the payments that a page lists, in its order."""
    return re.findall(r'<th scope="row" class="id"><a href="[^"]+">(pt_\w+)</a>', page.content.decode())


def linked(page: Any, relation: str) -> str | None:
    found = re.search(rf'<a href="([^"]+)" rel="{relation}">', page.content.decode())
    return found[1].replace("&amp;", "&") if found else None


@pytest.mark.parametrize("model", ["organization", "apikey"])
def test_the_other_lists_show_what_there_is(admin_client: Client, payment: Payment, model: str) -> None:
    ApiKeyFactory.create(organization=payment.organization)

    rows = admin_client.get(f"/admin/payments/{model}/").content.decode().partition("<tbody>")[2]

    assert payment.organization.name in rows


def test_the_list_shows_what_staff_look_for(admin_client: Client, payment: Payment) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", admin_client.get(LIST).content.decode()))

    assert "2026-01-01 12:00:00 pt_1 Organization 1 live succeeded creditcard 10.00 EUR ct_7 Order 7" in text


def test_older_leads_through_all_payments_once_and_newer_back_again(admin_client: Client, payment: Payment) -> None:
    for number in range(2, 122):
        PaymentFactory.create(
            id=f"pt_{number}", organization=payment.organization, created_at=NOON + timedelta(minutes=number // 2)
        )
    expected = list(
        Payment.objects.visible_to(Access(payment.organization_id, payment.mode))
        .order_by("-created_at", "-id")
        .values_list("id", flat=True)
    )

    pages = [admin_client.get(LIST)]
    while href := linked(pages[-1], "next"):
        pages.append(admin_client.get(LIST + href))
    back = admin_client.get(LIST + str(linked(pages[-1], "prev")))

    assert [each for page in pages for each in listed(page)] == expected
    assert list(map(len, map(listed, pages))) == [50, 50, 21]
    assert listed(back) == listed(pages[1])


def test_a_list_is_one_organizations_and_one_modes(admin_client: Client, payment: Payment) -> None:
    PaymentFactory.create(id="pt_2", organization=payment.organization, test=True)
    PaymentFactory.create(id="pt_3", organization=OrganizationFactory.create(id=2))

    assert listed(admin_client.get(LIST)) == ["pt_1"]
    assert listed(admin_client.get(LIST, {"mode": "test"})) == ["pt_2"]
    assert listed(admin_client.get(LIST, {"organization": "2"})) == ["pt_3"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["pt_3", "pt_2", "pt_1"]),
        ({"status": ["failed"]}, ["pt_2"]),
        ({"status": ["failed", "succeeded"]}, ["pt_3", "pt_2", "pt_1"]),
        ({"method": "ideal"}, ["pt_2"]),
        ({"method": "ideal, creditcard"}, ["pt_3", "pt_2", "pt_1"]),
        ({"currency": "usd"}, ["pt_3"]),
        ({"since": "2026-01-02"}, ["pt_3", "pt_2"]),
        ({"until": "2026-01-02"}, ["pt_2", "pt_1"]),
        ({"since": "2026-01-02", "until": "2026-01-02"}, ["pt_2"]),
        ({"q": "ct_8"}, ["pt_3"]),
        ({"q": "ct_9"}, []),
        ({"q": "Order 7"}, ["pt_2", "pt_1"]),
        ({"q": "Order 71"}, ["pt_2"]),
        ({"q": "order 7"}, []),
        ({"q": "rder 7"}, []),
        ({"q": "Order 7%"}, []),
        ({"q": "Order 7", "status": ["succeeded"], "since": "2026-01-01"}, ["pt_1"]),
        ({"q": "x" * 64}, []),
    ],
)
def test_the_list_is_searched_and_filtered(
    admin_client: Client, payment: Payment, asked: dict[str, Any], found: list[str]
) -> None:
    of = {"organization": payment.organization}
    day = timedelta(days=1)
    PaymentFactory.create(id="pt_2", **of, failed=True, ideal=True, description="Order 71", created_at=NOON + day)
    PaymentFactory.create(
        id="pt_3", **of, description="Café", created_at=NOON + 2 * day, amount=Money("1.00", "USD"), customer_id="ct_8"
    )

    page = admin_client.get(LIST, asked)

    assert page.status_code == 200
    assert listed(page) == found
    assert ("No payment is like that" in page.content.decode()) is (not found)


def test_a_payments_id_leads_to_its_page_whosever_it_is(admin_client: Client, payment: Payment) -> None:
    PaymentFactory.create(id="pt_2", organization=OrganizationFactory.create(id=2), test=True)

    found = admin_client.get(LIST, {"q": "pt_2"})
    missing = admin_client.get(LIST, {"q": "pt_3"})

    assert (found.status_code, found["Location"]) == (302, "/admin/payments/payment/pt_5F2/change/")
    assert "There is no payment of this id." in missing.content.decode()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"status": "lost"}, "Status: Select a valid choice"),
        ({"organization": "3"}, "Organization: Select a valid choice"),
        ({"mode": "both"}, "Mode: Select a valid choice"),
        ({"method": "Ideal!"}, "Method: method must be a word of 1 to 32 lower-case letters"),
        ({"currency": "Euro"}, "Currency: currency must be an ISO 4217 currency code"),
        ({"since": "soon"}, "From: Enter a valid date"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, "To: This is before From."),
        ({"q": "x" * 65}, "Search: Ensure this value has at most 64 characters"),
        ({"q": "\0"}, "Search: Null characters are not allowed"),
    ],
)
def test_what_cannot_be_asked_is_said_and_nothing_is_listed(
    admin_client: Client, payment: Payment, asked: dict[str, str], told: str
) -> None:
    page = admin_client.get(LIST, asked)

    assert page.status_code == 200
    assert told in page.content.decode()
    assert listed(page) == []


@pytest.mark.parametrize("start", ["pt_404", "x", "pt_2", "", "pt_1\0", "pt_1\n"])
def test_a_page_that_begins_with_no_payment_of_the_list_is_none(
    admin_client: Client, payment: Payment, start: str
) -> None:
    PaymentFactory.create(id="pt_2", organization=OrganizationFactory.create(id=2))

    page = admin_client.get(LIST, {"from": start, "status": "succeeded"})

    assert page.status_code == 404
    assert "The payment with which this page begins is not one of these." in page.content.decode()


def test_search_that_times_out_says_what_to_narrow(admin_client: Client, payment: Payment) -> None:
    with failing_to_list(timeout_error()):
        page = admin_client.get(LIST, {"status": "open"})

    assert page.status_code == 503
    assert "could not be found in time. Choose From and To closer to each other." in page.content.decode()
    assert listed(page) == []


def test_other_database_errors_are_reported_as_unavailable(admin_client: Client, payment: Payment) -> None:
    admin_client.raise_request_exception = False
    with failing_to_list(OperationalError("the connection is closed")):
        answers = [admin_client.get(LIST, {"status": "open"}), admin_client.get(f"{LIST}export.csv")]

    assert [answer.status_code for answer in answers] == [503, 503]
    assert {answer.headers["Retry-After"] for answer in answers} == {"1"}
    assert {answer.content for answer in answers} == {b"The service is not available just now. Try again."}


def test_without_an_organization_there_is_a_way_to_make_one(admin_client: Client, db: None) -> None:
    for path in (LIST, "/admin/"):
        assert (
            'There is no organization yet. <a href="/admin/payments/organization/add/">'
            in admin_client.get(path).content.decode()
        )


def test_the_list_reads_a_page_by_its_place_and_counts_nothing(admin_client: Client, payment: Payment) -> None:
    for number in range(2, 60):
        PaymentFactory.create(id=f"pt_{number}", organization=payment.organization)

    with CaptureQueriesContext(connection) as queries:
        admin_client.get(LIST, {"status": "succeeded", "from": "pt_1"})

    on_payments = [query["sql"] for query in queries if "payments_payment" in query["sql"]]
    assert len(on_payments) == 1
    assert not re.search(r"COUNT\(|DISTINCT", on_payments[0])
    # Who asks; of the organizations the first, the one chosen, whether there are too many, and all; the page.
    assert len(queries) == 2 + 4 + 1


def test_a_payments_page_shows_it_and_changes_nothing(admin_client: Client, payment: Payment) -> None:
    path = "/admin/payments/payment/pt_5F1/change/"

    page = admin_client.get(path)
    attempt = admin_client.post(path, {"description": "changed"})

    payment.refresh_from_db()
    assert b"Order 7" in page.content
    assert b'name="description"' not in page.content
    assert attempt.status_code == 403
    assert payment.description == "Order 7"


def test_a_payments_page_shows_its_record_as_the_api_gives_it(
    admin_client: Client, client: Client, payment: Payment
) -> None:
    key = ApiKeyFactory.create(organization=payment.organization)
    given = client.get("/v2/payments/pt_1", headers={"Authorization": f"Bearer {vars(key)['text']}"}).json()

    page = admin_client.get("/admin/payments/payment/pt_5F1/change/")

    shown = page.context["record_text"]
    assert shown.startswith('{\n  "id": "pt_1",')
    assert json.loads(shown) == given


def test_a_payments_page_tells_what_happened_when(admin_client: Client, payment: Payment) -> None:
    Payment.objects.filter(id="pt_1").update(paid_at=NOON + timedelta(seconds=72), expires_at=NOON + timedelta(days=1))

    events = admin_client.get("/admin/payments/payment/pt_5F1/change/").context["payment"].events()

    assert [(event.name, f"{event.at:%d %H:%M:%S}", event.after) for event in events] == [
        ("Created", "01 12:00:00", ""),
        ("Paid", "01 12:01:12", "1 min 12 s"),
        ("Expires", "02 12:00:00", "1 d"),
    ]


def test_a_payments_page_names_the_customers_other_payments(admin_client: Client, payment: Payment) -> None:
    for number in range(2, 10):
        PaymentFactory.create(
            id=f"pt_{number}",
            organization=payment.organization,
            created_at=NOON + timedelta(minutes=number),
            customer_id="ct_7",
        )
    PaymentFactory.create(id="pt_10", organization=payment.organization, customer_id="ct_8")
    PaymentFactory.create(id="pt_11", organization=payment.organization, test=True, customer_id="ct_7")

    others = admin_client.get("/admin/payments/payment/pt_5F9/change/").context["others"]

    assert [other.record.id for other in others] == ["pt_8", "pt_7", "pt_6", "pt_5", "pt_4"]


def test_details_that_are_no_texts_are_shown_as_they_stand(admin_client: Client, payment: Payment) -> None:
    Payment.objects.filter(id="pt_1").update(details='{"bankName":"A","tries":2,"parts":["é"]}', metadata="{}")

    payment_shown = admin_client.get("/admin/payments/payment/pt_5F1/change/").context["payment"]

    assert payment_shown.details == [("Bank name", "A"), ("Tries", "2"), ("Parts", '["é"]')]
    assert payment_shown.metadata == []


@pytest.mark.parametrize("name", ["items", "keys", "0", "", "record", "__class__"])
def test_a_key_of_metadata_may_have_any_name(admin_client: Client, payment: Payment, name: str) -> None:
    Payment.objects.filter(id="pt_1").update(
        metadata=json.dumps({name: "any value"}), details='{"items":"3","Items":"4"}'
    )

    page = admin_client.get("/admin/payments/payment/pt_5F1/change/").content.decode()

    assert f'<th scope="row">{name}</th><td>any value</td>' in page
    assert "<dt>Items</dt><dd>3</dd><dt>Items</dt><dd>4</dd>" in page


def test_texts_are_no_markup(admin_client: Client, payment: Payment) -> None:
    hostile = "<script>alert(1)</script>"
    Payment.objects.filter(id="pt_1").update(description=hostile, metadata=f'{{"{hostile}":"{hostile}"}}')

    for path in (LIST, "/admin/payments/payment/pt_5F1/change/"):
        assert hostile not in admin_client.get(path).content.decode()


@pytest.mark.parametrize("payment_id", ["pt_5F404", "pt_5F1%00", "x", "%FF"])
def test_a_payment_that_is_none_leads_back_to_the_list(admin_client: Client, payment: Payment, payment_id: str) -> None:
    response = admin_client.get(f"/admin/payments/payment/{payment_id}/change/")

    assert (response.status_code, response["Location"]) == (302, LIST)


@pytest.mark.parametrize("path", ["payment/pt_5F1/delete/", "payment/add/"])
def test_payments_are_neither_made_nor_deleted_there(admin_client: Client, payment: Payment, path: str) -> None:
    assert admin_client.post(f"/admin/payments/{path}", {"post": "yes"}).status_code == 403


def test_payments_are_not_deleted_by_an_action_either(admin_client: Client, payment: Payment) -> None:
    admin_client.post(LIST, {"action": "delete_selected", "_selected_action": "pt_1", "post": "yes"})

    assert Payment.objects.exists()


PATHS = (
    LIST,
    "/admin/payments/payment/pt_5F1/change/",
    "/admin/payments/payment/export.csv",
    "/admin/payments/payment/export.jsonl",
)


@pytest.mark.parametrize("path", PATHS)
def test_a_stranger_is_led_to_the_login(client: Client, payment: Payment, path: str) -> None:
    response = client.get(path)

    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("path", PATHS)
def test_staff_see_payments_only_where_they_may(client: Client, payment: Payment, path: str) -> None:
    user = User.objects.create_user("clerk", is_staff=True)
    client.force_login(user)
    refused = client.get(path)
    start = client.get("/admin/").content.decode()

    user.user_permissions.add(Permission.objects.get(codename="view_payment"))
    allowed = client.get(path)

    assert refused.status_code == 403
    assert "Organization 1" not in start
    assert allowed.status_code == 200


def test_too_many_organizations_for_a_menu_are_named_by_their_ids(admin_client: Client, payment: Payment) -> None:
    for number in range(2, MENU_MAX + 1):
        OrganizationFactory.create(id=number)
    menu = admin_client.get(LIST).content.decode()

    OrganizationFactory.create(id=MENU_MAX + 1)
    page = admin_client.get(LIST, {"organization": "1"})

    assert '<select name="organization"' in menu
    assert '<input type="number" name="organization" value="1"' in page.content.decode()
    assert listed(page) == ["pt_1"]
