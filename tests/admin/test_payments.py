"""Payments in the admin: the list, a payment's page, permissions."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.models import Access, Change, Organization, Payment
from payments.models.identifiers import change_time
from tests.support.admin_site import create_staff
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.list_errors import failing_list_queries, timeout_error

pytestmark = pytest.mark.also("citus")

LIST = "/admin/payments/payment/"
PAGE = "/admin/payments/payment/pt_5F1/change/"


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
    """Return the IDs of the payments on a page, in its order."""
    return re.findall(r'<th scope="row" class="id"><a href="[^"]+">(pt_\w+)</a>', page.content.decode())


def link_href(page: Any, relation: str) -> str | None:
    """Return the target of a page's link to the next or previous page."""
    match = re.search(rf'<a href="([^"]+)" rel="{relation}">', page.content.decode())
    return match[1].replace("&amp;", "&") if match else None


def test_list_shows_the_main_fields_of_a_payment(admin_client: Client, payment: Payment) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", admin_client.get(LIST).content.decode()))
    text = text.replace("Jan 2026", "Jan")  # after this year

    assert "Thu 1 Jan 12:00 10.00 EUR Paid Order 7 Visa •• 4242 A. Baker pt_1 Copy" in text


def test_links_lead_through_all_payments_once_and_back(admin_client: Client, payment: Payment) -> None:
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
    while href := link_href(pages[-1], "next"):
        pages.append(admin_client.get(LIST + href))
    back = admin_client.get(LIST + str(link_href(pages[-1], "prev")))

    assert [payment_id for page in pages for payment_id in listed(page)] == expected
    assert list(map(len, map(listed, pages))) == [50, 50, 21]
    assert listed(back) == listed(pages[1])


def test_list_has_one_organization_and_one_mode(admin_client: Client, payment: Payment) -> None:
    PaymentFactory.create(id="pt_2", organization=payment.organization, test=True)
    PaymentFactory.create(id="pt_3", organization=OrganizationFactory.create(id=2))

    assert listed(admin_client.get(LIST)) == ["pt_1"]
    assert listed(admin_client.get(LIST, {"mode": "test"})) == ["pt_2"]
    assert listed(admin_client.get(LIST, {"organization": "2", "mode": "live"})) == ["pt_3"]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, ["pt_3", "pt_2", "pt_1"]),
        ({"status": ["failed"]}, ["pt_2"]),
        ({"status": ["failed", "succeeded"]}, ["pt_3", "pt_2", "pt_1"]),
        ({"method": "ideal"}, ["pt_2"]),
        ({"method": "ideal, creditcard"}, ["pt_3", "pt_2", "pt_1"]),
        ({"currency": "usd"}, ["pt_3"]),
        ({"since": "2026-01-02"}, ["pt_3", "pt_2"]),
        ({"until": "2026-01-02"}, ["pt_2", "pt_1"]),
        ({"period": "custom", "until": "2026-01-01"}, ["pt_1"]),
        ({"period": "7d"}, []),
        ({"method": ["ideal", "paypal"]}, ["pt_2"]),
        ({"method": ["", "creditcard eps"]}, ["pt_3", "pt_1"]),
        ({"sequence": ["recurring"]}, ["pt_2"]),
        ({"since": "2026-01-05", "by": "paid"}, ["pt_3"]),
        ({"until": "2026-01-04", "by": "paid"}, ["pt_1"]),
        ({"since": "2026-01-05", "until": "2026-01-05", "by": "paid"}, ["pt_3"]),
        ({"currency": "EUR", "amount_min": "10"}, ["pt_2", "pt_1"]),
        ({"currency": ["EUR", "USD"], "amount_max": "9.99"}, ["pt_3"]),
        ({"currency": "EUR", "amount_min": "9,99"}, ["pt_2", "pt_1"]),
        ({"q": "color:blue size:2"}, []),
        ({"sort": "asc"}, ["pt_1", "pt_2", "pt_3"]),
        ({"sort": "asc", "q": "order"}, ["pt_1", "pt_2"]),
        ({"sort": "asc", "from": "pt_2"}, ["pt_2", "pt_3"]),
        ({"since": "2026-01-02", "until": "2026-01-02"}, ["pt_2"]),
        ({"q": "ct_8"}, ["pt_3"]),
        ({"q": "ct_9"}, []),
        ({"q": "71"}, ["pt_2"]),
        ({"q": "order"}, ["pt_2", "pt_1"]),
        ({"q": "order 7%"}, ["pt_1"]),
        ({"q": "rder"}, []),
        ({"q": "café"}, ["pt_3"]),
        ({"q": "blue"}, ["pt_3"]),
        ({"q": "color"}, []),
        ({"q": "1.00"}, ["pt_3"]),
        ({"q": "1.00 USD"}, ["pt_3"]),
        ({"q": "1.00 EUR"}, []),
        ({"q": "10"}, ["pt_2", "pt_1"]),
        ({"q": "4242"}, ["pt_3", "pt_1"]),
        ({"q": "2026-01-02"}, ["pt_2"]),
        ({"q": "color:blue"}, ["pt_3"]),
        ({"q": "color=red"}, []),
        ({"q": "status:failed"}, ["pt_2"]),
        ({"q": "order >5 EUR"}, ["pt_2", "pt_1"]),
        ({"q": "today"}, []),
        ({"q": "2026-01 order"}, ["pt_2", "pt_1"]),
        ({"q": "2026-01-02", "since": "2026-01-03"}, []),
        ({"q": "ct_8 4242"}, ["pt_3"]),
        ({"q": "order", "status": ["succeeded"], "since": "2026-01-01"}, ["pt_1"]),
        ({"q": "1.00 EUR", "currency": "USD"}, []),
        ({"q": "x" * 200}, []),
    ],
)
def test_list_can_be_searched_and_filtered(
    admin_client: Client, payment: Payment, parameters: dict[str, Any], expected: list[str]
) -> None:
    owner = {"organization": payment.organization}
    day = timedelta(days=1)
    PaymentFactory.create(
        id="pt_2",
        **owner,
        failed=True,
        ideal=True,
        description="Order 71",
        created_at=NOON + day,
        sequence_type="recurring",
        paid_at=None,
    )
    PaymentFactory.create(
        id="pt_3",
        **owner,
        description="Café",
        created_at=NOON + 2 * day,
        amount=Decimal("1.00"),
        amount_currency="USD",
        customer_id="ct_8",
        metadata='{"color":"blue"}',
        paid_at=NOON + 4 * day,
    )

    page = admin_client.get(LIST, parameters)

    assert page.status_code == 200
    assert listed(page) == expected
    assert ("No payments match" in page.content.decode()) is (not expected)


@pytest.mark.parametrize(("days_ago", "parameters"), [(2, {"period": "today"}), (1, {"q": "yesterday"})])
def test_periods_end_with_the_day_that_an_export_began(
    admin_client: Client, organization: Organization, days_ago: int, parameters: dict[str, str]
) -> None:
    now = datetime.now(UTC)
    PaymentFactory.create(id="pt_1", organization=organization, created_at=now - timedelta(days=2))
    PaymentFactory.create(organization=organization, created_at=now)
    today = str((now - timedelta(days=days_ago)).date())

    assert listed(admin_client.get(LIST, {**parameters, "today": today})) == ["pt_1"]


@pytest.mark.parametrize("days", [-1, 1])
def test_export_of_another_day_is_refused(admin_client: Client, organization: Organization, days: int) -> None:
    today = datetime.now(UTC).date() + days * timedelta(days=4)

    page = admin_client.get(LIST, {"today": str(today), "period": "90d"})

    assert "Today: The list is of another day. Open it again." in page.content.decode()


def test_page_says_how_it_understood_the_search(admin_client: Client, payment: Payment) -> None:
    amount = admin_client.get(LIST, {"q": "10.00 EUR", "status": "succeeded"})
    word = admin_client.get(LIST, {"q": "Order"})

    link = re.search(r'<a href="\?([^"]+)">Search as text</a>', amount.content.decode())
    assert link is not None
    words = admin_client.get(f"{LIST}?{link[1]}".replace("&amp;", "&"))
    assert "Amount 10.00 EUR" in amount.content.decode()
    assert listed(amount) == ["pt_1"]
    assert "“10 00 eur”" in words.content.decode()
    assert listed(words) == []
    assert "Search as text" not in word.content.decode()


def test_search_for_a_payment_id_opens_the_payment_of_any_organization(admin_client: Client, payment: Payment) -> None:
    PaymentFactory.create(id="pt_2", organization=OrganizationFactory.create(id=2), test=True)

    known = admin_client.get(LIST, {"q": "pt_2"})
    unknown = admin_client.get(LIST, {"q": "pt_3"})

    assert (known.status_code, known["Location"]) == (302, "/admin/payments/payment/pt_5F2/change/")
    assert "No payment has the ID pt_3." in unknown.content.decode()


@pytest.mark.parametrize("address", ["https://pay.example/v2/payments/pt_1", f"https://pay.example{PAGE}?q=a+b"])
def test_address_of_a_payment_opens_it(admin_client: Client, payment: Payment, address: str) -> None:
    assert admin_client.get(LIST, {"q": address})["Location"] == PAGE


def test_payment_is_found_by_text_in_another_form(admin_client: Client) -> None:
    PaymentFactory.create(id="pt_1", organization=OrganizationFactory.create(id=1), description="Cafe\u0301")

    assert listed(admin_client.get(LIST, {"q": "CAFÉ"})) == ["pt_1"]


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"status": "lost"}, "Status: Select a valid choice"),
        ({"organization": "3"}, "Organization: Choose an organization in the header. This one does not exist."),
        ({"mode": "both"}, "Mode: Select a valid choice"),
        ({"method": "Ideal!"}, "Method: must be a word of 1 to 32 letters"),
        ({"currency": "Euro"}, "Currency: must be an ISO 4217 currency code"),
        ({"since": "soon"}, "From: Enter a valid date"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, "To: Enter a date on or after From."),
        ({"period": "8d"}, "Period: Select a valid choice"),
        ({"by": "expired"}, "Days: Select a valid choice"),
        ({"count": "all"}, "Count: Select a valid choice"),
        ({"sort": "amount"}, "Order: Select a valid choice"),
        ({"sequence": "second"}, "Type: Select a valid choice"),
        ({"amount_min": "10"}, "Currency: Choose a currency for the amount."),
        ({"amount_max": "10"}, "Currency: Choose a currency for the amount."),
        ({"amount_min": "1.5.", "currency": "EUR"}, "Smallest amount: must be a decimal with at most 13 digits"),
        (
            {"amount_min": "10", "amount_max": "9", "currency": "EUR"},
            "Largest amount: must be at or above Smallest amount.",
        ),
        ({"q": "order:1 order:2"}, "Search: Enter only one value of each metadata key."),
        ({"q": " ".join(f"k{number}:1" for number in range(6))}, "Search: metadata"),
        ({"method": [f"m{number}" for number in range(21)]}, "Method: must be a word of 1 to 32 letters"),
        ({"q": "x" * 201}, "Search: Ensure this value has at most 200 characters"),
        ({"q": "#"}, "Search: Enter a word, a number or a date."),
        ({"q": "ct_7 ct_8"}, "Search: Enter only one customer."),
        ({"q": "a:1 b:1 c:1 d:1 e:1 f:1"}, "must be at most 5 pairs, key and value"),
        ({"q": "method:é"}, "Search: method must be a word of 1 to 32 letters"),
        ({"q": ">9 EUR <8 EUR"}, "Search: The upper bound of the amount must be at or above the lower bound."),
        ({"q": "\0"}, "Search: Null characters are not allowed"),
    ],
)
def test_invalid_search_shows_the_error_and_no_payments(
    admin_client: Client, payment: Payment, parameters: dict[str, Any], error: str
) -> None:
    page = admin_client.get(LIST, parameters)

    assert page.status_code == 400
    assert error in page.content.decode()
    assert listed(page) == []


def test_invalid_form_still_offers_the_methods_and_currencies_of_payments(
    admin_client: Client, payment: Payment
) -> None:
    page = admin_client.get(LIST, {"amount_min": "10,50"}).content.decode()

    assert '<input type="checkbox" name="currency" value="EUR">' in page
    assert '<input type="checkbox" name="method" value="creditcard"> Credit card' in page
    assert 'value="10,50"' in page


def test_pages_are_numbered_while_links_are_followed(admin_client: Client, payment: Payment) -> None:
    PaymentFactory.create_batch(100, organization=payment.organization)
    first = admin_client.get(LIST)
    second = admin_client.get(LIST + str(link_href(first, "next")))
    third = admin_client.get(LIST + str(link_href(second, "next")))
    back = admin_client.get(LIST + str(link_href(third, "prev")))
    elsewhere = admin_client.get(LIST, {"from": listed(second)[0]})
    one_page = admin_client.get(LIST, {"q": "Order 7"})

    assert list(map(numbers, (first, second, third, back))) == ["1-50", "51-100", "101-101", "51-100"]
    assert (numbers(elsewhere), numbers(one_page)) == (None, None)


def numbers(page: Any) -> str | None:
    match = re.search(r"([0-9\u2013]+) of <strong>101 payments", page.content.decode())
    return match[1].replace("\u2013", "-") if match else None


@pytest.mark.parametrize("before", ["x", "-1", "9999999999", ""])
def test_invalid_number_of_a_page_is_left_out(admin_client: Client, payment: Payment, before: str) -> None:
    page = admin_client.get(LIST, {"from": "pt_1", "before": before})

    assert listed(page) == ["pt_1"]


@pytest.mark.parametrize("start", ["pt_404", "x", "pt_2", "", "pt_1\0", "pt_1\n"])
def test_page_that_starts_outside_the_list_is_not_found(admin_client: Client, payment: Payment, start: str) -> None:
    PaymentFactory.create(id="pt_2", organization=OrganizationFactory.create(id=2))

    page = admin_client.get(LIST, {"from": start, "status": "succeeded"})

    assert page.status_code == 404
    assert "This page starts at a payment outside the list. View its first page instead." in page.content.decode()


def test_search_that_times_out_asks_for_a_shorter_period(admin_client: Client, payment: Payment) -> None:
    with failing_list_queries(timeout_error()):
        page = admin_client.get(LIST, {"status": "open"})

    assert (page.status_code, page.headers["Retry-After"]) == (503, "1")
    assert "The search timed out. Choose a shorter period." in page.content.decode()
    assert listed(page) == []


def test_other_database_errors_are_reported_as_unavailable(admin_client: Client, payment: Payment) -> None:
    admin_client.raise_request_exception = False
    with failing_list_queries(OperationalError("the connection is closed")):
        responses = [admin_client.get(LIST, {"status": "open"}), admin_client.get(f"{LIST}export.csv")]

    assert [response.status_code for response in responses] == [503, 503]
    assert {response.headers["Retry-After"] for response in responses} == {"1"}
    assert {response.content for response in responses} == {b"The service is unavailable. Try again later."}


def test_pages_without_organizations_link_to_adding_one(admin_client: Client, db: None) -> None:
    for path in (LIST, "/admin/"):
        assert (
            'There are no organizations yet. <a href="/admin/payments/organization/add/">'
            in admin_client.get(path).content.decode()
        )


def test_list_reads_one_page_by_keyset_without_counting(admin_client: Client, payment: Payment) -> None:
    for number in range(2, 60):
        PaymentFactory.create(id=f"pt_{number}", organization=payment.organization)

    with CaptureQueriesContext(connection) as queries:
        admin_client.get(LIST, {"status": "succeeded", "from": "pt_1"})

    known_words, page, _, _, totals = [
        query["sql"] for query in queries if re.search(r"payments_payment\b", query["sql"])
    ]
    assert known_words.endswith("LIMIT 1000")
    assert not re.search(r"COUNT\(|DISTINCT", page)
    assert "LIMIT 10001" in totals
    settings = [
        query["sql"] for query in queries if re.match("SELECT current_setting|SAVEPOINT|RELEASE|PRAGMA", query["sql"])
    ]
    # Session and user; preferences and saved filters; the first organization, the selected one, all for the menu; known
    # words, page; the first and the last day, their stored totals, the totals of the payments; the record of the read.
    assert len(queries) - len(settings) == 2 + 2 + 3 + 2 + 4 + 1


def test_payment_page_is_read_only(admin_client: Client, payment: Payment) -> None:
    path = PAGE

    page = admin_client.get(path)
    attempt = admin_client.post(path, {"description": "changed"})

    payment.refresh_from_db()
    assert b"Order 7" in page.content
    assert b'name="description"' not in page.content
    assert attempt.status_code == 403
    assert payment.description == "Order 7"


def test_payment_page_shows_the_response_of_the_api(admin_client: Client, client: Client, payment: Payment) -> None:
    key = ApiKeyFactory.create(organization=payment.organization)
    response = client.get("/v2/payments/pt_1", headers={"Authorization": f"Bearer {vars(key)['text']}"})

    page = admin_client.get("/admin/payments/payment/pt_5F1/change/")

    api_response = page.context["api_response"]
    assert api_response.startswith('{\n  "id": "pt_1",')
    assert json.loads(api_response) == response.json()


def test_payment_page_lists_other_payments_of_the_customer(admin_client: Client, payment: Payment) -> None:
    for number in range(2, 10):
        PaymentFactory.create(
            id=f"pt_{number}",
            organization=payment.organization,
            created_at=NOON + timedelta(minutes=number),
            customer_id="ct_7",
        )
    PaymentFactory.create(id="pt_10", organization=payment.organization, customer_id="ct_8")
    PaymentFactory.create(id="pt_11", organization=payment.organization, test=True, customer_id="ct_7")

    page = admin_client.get("/admin/payments/payment/pt_5F9/change/")

    assert [other.record.id for other in page.context["customer_payments"]] == ["pt_8", "pt_7", "pt_6", "pt_5", "pt_4"]


def test_details_that_are_not_texts_are_shown_as_json(admin_client: Client, payment: Payment) -> None:
    Payment.objects.filter(id="pt_1").update(details='{"bankName":"A","tries":2,"parts":["é"]}', metadata="{}")

    display = admin_client.get("/admin/payments/payment/pt_5F1/change/").context["payment"]

    assert display.details == [("Bank name", "A"), ("Tries", "2"), ("Parts", '["é"]')]
    assert display.metadata == []


@pytest.mark.parametrize("name", ["items", "keys", "0", "", "record", "__class__"])
def test_metadata_key_can_have_any_name(admin_client: Client, payment: Payment, name: str) -> None:
    Payment.objects.filter(id="pt_1").update(
        metadata=json.dumps({name: "any value"}), details='{"items":"3","Items":"4"}'
    )

    page = admin_client.get("/admin/payments/payment/pt_5F1/change/").content.decode()

    assert f'<th scope="row"><bdi>{name}</bdi></th><td><bdi>any value</bdi></td>' in page
    assert page.count("<dt><bdi>Items</bdi></dt>") == 2


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://shop.example/?a=1&b", '<a href="https://shop.example/?a=1&amp;b" rel="noopener noreferrer">'),
        ("HTTP://shop.example/", '<a href="HTTP://shop.example/" rel="noopener noreferrer">'),
        ("myapp://paid?a=1&b", '<dd class="url"><bdi>myapp://paid?a=1&amp;b</bdi></dd>'),
        ("intent:<b>", '<dd class="url"><bdi>intent:&lt;b&gt;</bdi></dd>'),
    ],
)
def test_only_web_addresses_are_links(admin_client: Client, payment: Payment, url: str, shown: str) -> None:
    Payment.objects.update(redirect_url=url)

    page = admin_client.get(f"{LIST}pt_1/change/").content.decode()

    assert shown in page


def test_texts_are_escaped(admin_client: Client, payment: Payment) -> None:
    hostile = "<script>alert(1)</script>"
    Payment.objects.filter(id="pt_1").update(description=hostile, metadata=f'{{"{hostile}":"{hostile}"}}')

    for path in (LIST, "/admin/payments/payment/pt_5F1/change/"):
        assert hostile not in admin_client.get(path).content.decode()


@pytest.mark.parametrize("payment_id", ["pt_5F404", "pt_5F1%00", "x", "%FF"])
def test_unknown_payment_redirects_to_the_list(admin_client: Client, payment: Payment, payment_id: str) -> None:
    response = admin_client.get(f"/admin/payments/payment/{payment_id}/change/")

    assert (response.status_code, response["Location"]) == (302, LIST)


@pytest.mark.parametrize("path", ["payment/pt_5F1/delete/", "payment/add/"])
def test_payments_cannot_be_added_or_deleted(admin_client: Client, payment: Payment, path: str) -> None:
    assert admin_client.post(f"/admin/payments/{path}", {"post": "yes"}).status_code == 403


def test_payments_cannot_be_deleted_by_an_action(admin_client: Client, payment: Payment) -> None:
    admin_client.post(LIST, {"action": "delete_selected", "_selected_action": "pt_1", "post": "yes"})

    assert Payment.objects.exists()


@pytest.mark.parametrize(("page", "status"), [("history", 404), ("delete", 403)])
@pytest.mark.parametrize("payment_id", ["pt_5F1", "pt_5F404", "%00", "1%00"])
def test_payments_have_no_other_pages(
    admin_client: Client, payment: Payment, page: str, status: int, payment_id: str
) -> None:
    with CaptureQueriesContext(connection) as queries:
        response = admin_client.get(f"{LIST}{payment_id}/{page}/")

    assert response.status_code == status
    assert "payments_payment" not in str(queries.captured_queries)


PATHS = (
    LIST,
    "/admin/payments/payment/pt_5F1/change/",
    "/admin/payments/payment/export.csv",
    "/admin/payments/payment/export.jsonl",
)


@pytest.mark.parametrize("path", PATHS)
def test_anonymous_user_is_redirected_to_the_login(client: Client, payment: Payment, path: str) -> None:
    response = client.get(path)

    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("path", PATHS)
def test_staff_need_the_permission_to_view_payments(client: Client, payment: Payment, path: str) -> None:
    user = create_staff("clerk")
    client.force_login(user)
    refused = client.get(path)
    start = client.get("/admin/").content.decode()

    user.user_permissions.add(Permission.objects.get(codename="view_payment"))
    allowed = client.get(path)

    assert refused.status_code == 403
    assert "Organization 1" not in start
    assert allowed.status_code == 200


def test_payment_page_shows_when_the_service_last_wrote_the_payment(
    admin_client: Client, organization: Organization
) -> None:
    PaymentFactory.create(id="pt_1", organization=organization)
    Payment.objects.filter(id="pt_1").update(description="changed")
    changed_at = change_time(Change.objects.latest("number").change_id)
    path = PAGE

    page = admin_client.get(path).content.decode()

    text = f"{changed_at:%Y-%m-%d %H:%M:%S}"
    time = f'<time datetime="{changed_at.isoformat()}" title="{text} UTC">{text}</time>'
    assert f"<strong>Last updated by an import</strong> {time}" in page
