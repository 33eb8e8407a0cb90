"""Exports of the payment list: complete, in parts that join seamlessly, with texts that a spreadsheet keeps."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db.models import F
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from payments.admin.payments.downloads import file_name
from payments.export.bookkeeping import DEFAULT_COLUMNS
from payments.export.files import TITLES, csv_cells
from payments.ingest.formats.spreadsheets import FORMULA, protect, unprotect
from payments.models import DayKind, Organization, Payment, StaffPreferences
from payments.runtime.process import process
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.lines import line, record
from tests.support.list_errors import failing_list_queries, timeout_error
from tests.support.processes import ROOT

pytestmark = pytest.mark.also("citus")

CSV = "/admin/payments/payment/export.csv"
JSON_LINES = "/admin/payments/payment/export.jsonl"
EXPORT_OPTIONS = "/admin/payments/payment/export-options"

# Texts, and whether a spreadsheet or a data library takes them for another value.
TEXTS = list(map(json.loads, (ROOT / "tests/documents/spreadsheets.jsonl").read_text().splitlines()))


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=1)


def fetch_parts(client: Client, path: str, **parameters: Any) -> Iterator[bytes]:
    """Follow `Link: <...>; rel="next"` to the last part, as the page's script does."""
    response = client.get(path, parameters)
    while True:
        assert response.status_code == 200, response.content
        yield response.content
        if "Link" not in response.headers:
            return
        link = re.fullmatch(r'<(\?.+)>; rel="next"', response.headers["Link"])
        assert link
        response = client.get(path + link[1])


def csv_rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def import_lines(*lines: bytes, tmp_path: Any) -> None:
    (tmp_path / "payments.jsonl").write_bytes(b"\n".join(lines))
    call_command("import_payments", str(tmp_path / "payments.jsonl"))


@pytest.mark.parametrize("number", [0, 1, 3, 4, 7])
def test_parts_join_to_the_complete_export(
    admin_client: Client, organization: Organization, settings: Settings, number: int
) -> None:
    settings.PAYMENTS_EXPORT_PART_ROWS = 3
    for index in range(number):
        PaymentFactory.create(id=f"pt_{index}", organization=organization)
    PaymentFactory.create(id="pt_x", organization=organization, failed=True)

    parts = [*fetch_parts(admin_client, CSV, status="succeeded")]

    assert [row["id"] for row in csv_rows(b"".join(parts))] == [f"pt_{index}" for index in reversed(range(number))]
    assert len(parts) == max(1, -(-number // 3))


def test_csv_file_has_exactly_these_bytes(admin_client: Client, organization: Organization) -> None:
    """Excel needs the byte order mark. RFC 4180 ends each line with CRLF."""
    PaymentFactory.create(id="pt_1", organization=organization, description="Café", ideal=True, created_at=NOON)

    response = admin_client.get(CSV)

    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert response.content == (
        b"\xef\xbb\xbfid,mode,amount.value,amount.currency,amountNet.value,amountNet.currency,amountRemaining.value,"
        b"amountRemaining.currency,description,method,redirectUrl,webhookUrl,status,organizationId,sequenceType,metadata,"
        b"details,createdAt,expiresAt,paidAt,customerId\r\n"
        b"pt_1,live,10.00,EUR,,,,,Caf\xc3\xa9,ideal,,,succeeded,1,oneoff,{},"
        b'"{""consumerName"":""B. Cook""}",2026-01-01T12:00:00.000,,2026-01-01T12:00:07.000,\r\n'
    )


def test_json_lines_equal_those_of_the_export_command(
    admin_client: Client, organization: Organization, tmp_path: Any, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    import_lines(line(), line(id="pt_2", customerId="ct_8"), tmp_path=tmp_path)
    call_command("export_payments", organization=1, mode="live")
    expected = capsysbinary.readouterr().out

    response = admin_client.get(JSON_LINES)

    assert response.headers["Content-Type"] == "application/jsonl"
    assert response.content == expected


def test_csv_row_has_all_members_of_the_record(admin_client: Client, organization: Organization, tmp_path: Any) -> None:
    import_lines(line(), tmp_path=tmp_path)
    expected = record()

    [row] = csv_rows(b"".join(fetch_parts(admin_client, CSV)))

    assert {title: text for title, text in row.items() if text} == {
        **{name: expected[name] for name in ("id", "createdAt", "organizationId", "mode", "status", "method")},
        **{name: expected[name] for name in ("sequenceType", "description", "customerId", "paidAt", "expiresAt")},
        **{name: expected[name] for name in ("redirectUrl", "webhookUrl")},
        "amount.value": "10.00",
        "amount.currency": "EUR",
        "amountNet.value": "9.55",
        "amountNet.currency": "EUR",
        "amountRemaining.value": "10.00",
        "amountRemaining.currency": "EUR",
        "metadata": '{"zeta":"1","alpha":"2"}',
        "details": (
            '{"cardNumber":"4242 42XX XXXX 4242","cardHolder":"A. Baker","cardLabel":"Visa","cardCountryCode":"NL"}'
        ),
    }


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        *((text, f"'{text}") for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\tOrder", "\rOrder", "\nOrder")),
        *((f"{character}1", f"'{character}1") for character in "\uff1d\uff0b\uff0d\uff20"),
        *((f"Order{separator}=1", f"Order{separator}'=1") for separator in (";", "\t", "\r", "\n", "\r\n")),
        ("=1;+2\t-3\n@4", "'=1;'+2\t'-3\n'@4"),
        ("\t=1", "'\t'=1"),
        ("'=1", "'''=1"),
        ("Order;''=1", "Order;'''=1"),
    ],
)
def test_text_cannot_become_a_formula(admin_client: Client, organization: Organization, text: str, cell: str) -> None:
    PaymentFactory.create(organization=organization, description=text)

    [row] = csv_rows(b"".join(fetch_parts(admin_client, CSV)))

    assert row["description"] == cell


@pytest.mark.once
@pytest.mark.parametrize("case", TEXTS, ids=lambda case: ascii(case["text"]))
def test_text_that_a_program_would_convert_gets_an_apostrophe(case: dict[str, Any]) -> None:
    text, is_converted = case["text"], case["converted"]

    assert protect(text) == ("'" if is_converted else "") + text
    assert unprotect(protect(text)) == text


@pytest.mark.parametrize("column", ["description", "method"])
def test_export_protects_texts_that_a_program_would_convert(column: str) -> None:
    rows = [{**dict.fromkeys(TITLES, ""), column: text} for text in ("1E5", "TRUE", "null", "007", "5-3", "Tea", "7")]

    cells = [csv_cells(tuple(row.values()))[TITLES.index(column)] for row in rows]

    assert cells == ["'1E5", "'TRUE", "'null", "'007", "'5-3", "Tea", "7"]


PIECES = st.sampled_from([*"=-\uff1d';\t\r\n a0159.,:/%€(", "1E5", "Mar", "true", "null", " pm"])
PIECEWISE = st.lists(PIECES, max_size=9).map("".join)


@given(PIECEWISE)
def test_protection_is_reversible_and_leaves_no_formula(text: str) -> None:
    protected = protect(text)

    assert unprotect(protected) == text
    assert re.search(rf"(?:\A|[;\t\r\n])[{FORMULA}]|\A[\t\r\n]", protected) is None


@given(PIECEWISE)
def test_text_is_known_without_the_apostrophe_that_gnumeric_removes(text: str) -> None:
    assert unprotect(protect(text).removeprefix("'")) == text


@pytest.mark.parametrize("text", ["'", "'s-Hertogenbosch", "'n Abend", "Rock'n'Roll", "'90s Party", "'Tea'"])
def test_apostrophe_of_another_program_is_part_of_the_text(text: str) -> None:
    assert unprotect(text) == text


# The columns whose values have a form that needs no protection.
FIXED = re.compile(r"\.|At\Z|\A(?:id|mode|status|sequenceType|customerId)\Z")


@given(st.lists(PIECEWISE, min_size=len(TITLES), max_size=len(TITLES)))
def test_all_texts_but_those_of_a_fixed_form_are_protected(texts: list[str]) -> None:
    expected = [text if FIXED.search(title) else protect(text) for title, text in zip(TITLES, texts, strict=True)]

    assert csv_cells(tuple(texts)) == expected


def test_negative_amount_stays_a_number(admin_client: Client, organization: Organization, tmp_path: Any) -> None:
    import_lines(line(amount={"value": "-10.00", "currency": "EUR"}), tmp_path=tmp_path)

    [row] = csv_rows(b"".join(fetch_parts(admin_client, CSV)))

    assert row["amount.value"] == "-10.00"


def test_line_breaks_quotes_and_non_ascii_characters_are_preserved(
    admin_client: Client, organization: Organization
) -> None:
    text = 'Café "№ 7";\r\nsecond line, €'
    PaymentFactory.create(organization=organization, description=text)

    [row] = csv_rows(b"".join(fetch_parts(admin_client, CSV)))

    assert row["description"] == text


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ({"status": "lost"}, 400),
        ({"q": "pt_1"}, 400),
        ({"organization": "2"}, 400),
        ({"from": "pt_404"}, 404),
        ({"from": "pt_1\0", "status": "failed"}, 404),
    ],
)
def test_invalid_export_gets_an_error_as_text(
    admin_client: Client, organization: Organization, parameters: dict[str, str], status: int
) -> None:
    response = admin_client.get(CSV, parameters)

    assert response.status_code == status
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_export_that_times_out_asks_for_a_shorter_period(admin_client: Client, organization: Organization) -> None:
    with failing_list_queries(timeout_error()):
        response = admin_client.get(CSV, {"status": "open"})

    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert "The search timed out. Choose a shorter period." in response.content.decode()


def test_second_export_at_the_same_time_is_refused(admin_client: Client, organization: Organization) -> None:
    with process.shares.exports():
        response = admin_client.get(CSV)

    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert response.content.decode() == "Another export is running. Try again in a second."
    assert admin_client.get(CSV).status_code == 200


def test_other_file_formats_are_not_found(admin_client: Client, organization: Organization) -> None:
    assert admin_client.get("/admin/payments/payment/export.xlsx").status_code == 404


def test_export_is_not_cached(admin_client: Client, organization: Organization) -> None:
    assert "no-store" in admin_client.get(CSV).headers["Cache-Control"]


BOOK: dict[str, Any] = {
    "columns": ["id", "createdAt", "amount.value", "metadata.order"],
    "decimal": "comma",
    "delimiter": "semicolon",
}


@pytest.fixture
def five_payments(db: None) -> None:
    organization = OrganizationFactory.create(id=1, time_zone="Asia/Tokyo")
    for number, currency in enumerate(("EUR", "USD", "EUR", "JPY", "EUR")):
        created_at = NOON + timedelta(days=number)
        PaymentFactory.create(organization=organization, amount_currency=currency, created_at=created_at)


# Options of the page and of the command.
EQUAL_OPTIONS: list[tuple[dict[str, Any], list[str]]] = [
    (BOOK, ["--columns", ",".join(BOOK["columns"]), "--decimal", "comma", "--delimiter", "semicolon"]),
    ({"columns": ["id, metadata.order", "amount"]}, ["--columns", "id,metadata.order,amount"]),
    ({"time_zone": "Europe/Paris", "delimiter": "tab"}, ["--time-zone", "Europe/Paris", "--delimiter", "tab"]),
    ({"totals": "on", "decimal": "comma"}, ["--totals", "--decimal", "comma"]),
    ({"decimal": ""}, ["--decimal", "point"]),
    ({}, []),
]


@pytest.mark.parametrize("case", [(*equal, rows) for equal in EQUAL_OPTIONS for rows in (1, 2, 5)])
def test_admin_and_command_write_the_same_bytes(
    admin_client: Client,
    five_payments: None,
    settings: Settings,
    capsysbinary: pytest.CaptureFixture[bytes],
    case: tuple[dict[str, Any], list[str], int],
) -> None:
    options, arguments, settings.PAYMENTS_EXPORT_PART_ROWS = case
    call_command("export_payments", "--organization", "1", "--mode", "live", "--format", "csv", *arguments)

    parts = [*fetch_parts(admin_client, CSV, **options)]

    assert b"".join(parts) == capsysbinary.readouterr().out
    assert len(parts) == -(-5 // settings.PAYMENTS_EXPORT_PART_ROWS)


def test_totals_are_those_of_the_rows_although_payments_change_meanwhile(
    admin_client: Client, five_payments: None, settings: Settings
) -> None:
    settings.PAYMENTS_EXPORT_PART_ROWS = 2
    content = b""
    for part in fetch_parts(admin_client, CSV, columns="amount", totals="on"):
        content += part
        Payment.objects.update(amount=F("amount") * 2)

    assert content.decode("utf-8-sig").splitlines() == [
        *("Amount,Currency", "10.00,EUR", "10.00,JPY", "20.00,EUR", "20.00,USD", "40.00,EUR", ""),
        *("Total EUR: succeeded payments,3", "Total EUR: paid,70.00"),
        *(f"Total EUR: {name},,known for 0 of 3 payments" for name in ("refunded", "fees", "net")),
        *("Total JPY: succeeded payments,1", "Total JPY: paid,10.00"),
        *(f"Total JPY: {name},,known for 0 of 1 payments" for name in ("refunded", "fees", "net")),
        *("Total USD: succeeded payments,1", "Total USD: paid,20.00"),
        *(f"Total USD: {name},,known for 0 of 1 payments" for name in ("refunded", "fees", "net")),
    ]


@pytest.mark.parametrize("sums", [None, "", "x", "W10:x:y"])
def test_part_of_totals_needs_the_sums_of_the_parts_before(
    admin_client: Client, organization: Organization, sums: str | None
) -> None:
    payment = PaymentFactory.create(organization=organization)
    query = {"totals": "on", "from": payment.id}

    response = admin_client.get(CSV, query if sums is None else {**query, "sums": sums})

    assert response.status_code == 400
    assert response.content.decode() == "This part does not follow another. Export again."


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"columns": ["id", "Amount"]}, "Columns: 'Amount' is not a column. Use id, "),
        ({"columns": "metadata.\0"}, "Columns: 'metadata.\\x00' is not a column."),
        ({"columns": ""}, "Columns: Choose a column."),
        ({"time_zone": "Mars"}, "Time zone: Enter the IANA name of a time zone"),
        ({"decimal": "."}, "Decimal: Select a valid choice."),
        ({"delimiter": "|"}, "Delimiter: Select a valid choice."),
    ],
)
def test_invalid_options_are_refused_and_not_stored(
    admin_client: Client, organization: Organization, options: dict[str, Any], error: str
) -> None:
    responses = [admin_client.get(CSV, options), admin_client.post(EXPORT_OPTIONS, options)]

    assert [response.status_code for response in responses] == [400, 400]
    assert all(response.content.decode().startswith(error) for response in responses)
    assert not StaffPreferences.objects.filter(export_options__isnull=False).exists()


def test_options_are_remembered_for_the_user(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization)
    default = chosen(admin_client)

    response = admin_client.post(EXPORT_OPTIONS, {**BOOK, "time_zone": "Asia/Tokyo", "totals": "on"})

    assert response.status_code == 204
    assert default == ([*DEFAULT_COLUMNS], "", [], [])
    assert chosen(admin_client) == (
        ["id", "createdAt", "amount.value"],
        "metadata.order",
        ["comma", "semicolon"],
        ['name="time_zone" value="Asia/Tokyo"', 'name="totals"'],
    )


def chosen(client: Client) -> tuple[list[str], str, list[str], list[str]]:
    """Return the options that the page shows: chosen columns, others, menus, and other fields with a value."""
    page = client.get("/admin/payments/payment/").content.decode()
    form = page.partition('<details class="menu export"')[2].partition("</form>")[0]
    [others] = re.findall(r'<input type="text" name="columns" value="([^"]*)"', form)
    return (
        re.findall(r'name="columns" value="([^"]+)" checked', form),
        others,
        re.findall(r'<option value="([^"]+)" selected', form),
        re.findall(r'name="time_zone" value="[^"]+"|name="totals"(?= [^>]*checked)', form),
    )


def test_options_are_stored_only_by_a_post_of_staff_who_view_payments(
    admin_client: Client, client: Client, organization: Organization
) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    token = client.get("/admin/").wsgi_request.META.get("CSRF_COOKIE", "")

    refused = client.post(EXPORT_OPTIONS, {**BOOK, "csrfmiddlewaretoken": token})

    assert (admin_client.get(EXPORT_OPTIONS).status_code, refused.status_code) == (403, 403)
    assert not StaffPreferences.objects.filter(export_options__isnull=False).exists()


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "first", "last", "expected"),
    [
        ("Demo Books", date(2026, 10, 1), date(2026, 10, 31), "demo-books-2026-10-paid"),
        ("Demo Books", date(2024, 2, 1), date(2024, 2, 29), "demo-books-2024-02-paid"),
        ("Demo Books", date(2026, 10, 1), date(2026, 10, 15), "demo-books-2026-10-01-to-2026-10-15-paid"),
        ("Demo Books", date(2026, 10, 2), date(2026, 10, 31), "demo-books-2026-10-02-to-2026-10-31-paid"),
        ("Demo Books", date(2026, 1, 1), date(2026, 12, 31), "demo-books-2026-01-01-to-2026-12-31-paid"),
        ("Demo Books", date(9999, 12, 1), date(9999, 12, 31), "demo-books-9999-12-paid"),
        ("Demo Books", date(2026, 10, 1), date(2026, 10, 1), "demo-books-2026-10-01-paid"),
        ("Demo Books", date(2026, 10, 1), None, "demo-books-from-2026-10-01-paid"),
        ("Demo Books", None, date(2026, 10, 1), "demo-books-to-2026-10-01-paid"),
        ("Demo Books", None, None, "demo-books-paid"),
        ("Bücher & ../Tee", None, None, "bucher-tee-paid"),
        ("本屋", None, None, "organization-7-paid"),
    ],
)
def test_file_is_named_after_the_organization_and_the_period(
    name: str, first: date | None, last: date | None, expected: str
) -> None:
    assert file_name(Organization(id=7, name=name), first, last, DayKind.PAID) == expected


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({}, "organization-1-created"),
        ({"since": "2026-01-01", "until": "2026-01-31"}, "organization-1-2026-01-created"),
        ({"since": "2026-01-01", "until": "2026-01-31", "by": "paid"}, "organization-1-2026-01-paid"),
        ({"mode": "test"}, "organization-1-created-test"),
    ],
)
def test_page_has_the_name_of_the_file(
    admin_client: Client, organization: Organization, query: dict[str, str], name: str
) -> None:
    for mode in ("live", "test"):
        PaymentFactory.create(organization=organization, mode=mode)

    assert f'data-name="{name}"' in admin_client.get("/admin/payments/payment/", query).content.decode()
