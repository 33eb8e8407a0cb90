"""What staff take out as a file: all that was found, in parts that join without a seam, and no formula in it."""

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from payments.admin import downloads
from payments.models import Organization
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.filters import failing_to_list, timeout_error
from tests.support.lines import line, record

CSV = "/admin/payments/payment/export.csv"
JSON_LINES = "/admin/payments/payment/export.jsonl"


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=1)


def parts(client: Client, path: str, **asked: Any) -> Iterator[bytes]:
    """Follow `Link: <...>; rel="next"` to the end, as the page's script does."""
    answer = client.get(path, asked)
    while True:
        assert answer.status_code == 200, answer.content
        yield answer.content
        if "Link" not in answer.headers:
            return
        following = re.fullmatch(r'<(\?.+)>; rel="next"', answer.headers["Link"])
        assert following
        answer = client.get(path + following[1])


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def load(*lines: bytes, tmp_path: Any) -> None:
    (tmp_path / "payments.jsonl").write_bytes(b"\n".join(lines))
    call_command("import_payments", str(tmp_path / "payments.jsonl"))


@pytest.mark.parametrize("number", [0, 1, 3, 4, 7])
def test_parts_join_to_all_that_was_found(
    admin_client: Client, organization: Organization, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(downloads, "PART_ROWS", 3)
    for each in range(number):
        PaymentFactory.create(id=f"pt_{each}", organization=organization)
    PaymentFactory.create(id="pt_x", organization=organization, failed=True)

    found = [*parts(admin_client, CSV, status="succeeded")]

    assert [row["id"] for row in rows(b"".join(found))] == [f"pt_{each}" for each in reversed(range(number))]
    assert len(found) == max(1, -(-number // 3))


def test_json_lines_are_those_of_the_command(
    admin_client: Client, organization: Organization, tmp_path: Any, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    load(line(), line(id="pt_2", customerId="ct_8"), tmp_path=tmp_path)
    call_command("export_payments", organization=1, mode="live")
    expected = capsysbinary.readouterr().out

    assert b"".join(parts(admin_client, JSON_LINES)) == expected


def test_a_row_of_csv_has_all_that_the_record_has(
    admin_client: Client, organization: Organization, tmp_path: Any
) -> None:
    load(line(), tmp_path=tmp_path)
    given = record()

    [row] = rows(b"".join(parts(admin_client, CSV)))

    assert row == {
        **{name: given[name] for name in ("id", "createdAt", "organizationId", "mode", "status", "method")},
        **{name: given[name] for name in ("sequenceType", "description", "customerId", "paidAt", "expiresAt")},
        **{name: given[name] for name in ("redirectUrl", "webhookUrl")},
        "amount": "10.00",
        "currency": "EUR",
        "amountNet": "9.55",
        "currencyNet": "EUR",
        "amountRemaining": "10.00",
        "currencyRemaining": "EUR",
        "metadata": '{"zeta":"1","alpha":"2"}',
        "details": (
            '{"cardNumber":"4242 42XX XXXX 4242","cardHolder":"A. Baker","cardLabel":"Visa","cardCountryCode":"NL"}'
        ),
    }


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_no_text_is_a_formula(admin_client: Client, organization: Organization, text: str) -> None:
    PaymentFactory.create(organization=organization, description=text)

    [row] = rows(b"".join(parts(admin_client, CSV)))

    assert row["description"] == f"'{text}"


def test_a_negative_amount_stays_a_number(admin_client: Client, organization: Organization, tmp_path: Any) -> None:
    load(line(amount={"value": "-10.00", "currency": "EUR"}), tmp_path=tmp_path)

    [row] = rows(b"".join(parts(admin_client, CSV)))

    assert row["amount"] == "-10.00"


def test_lines_quotes_and_any_letters_come_back_as_they_are(admin_client: Client, organization: Organization) -> None:
    text = 'Café "№ 7";\r\nsecond line, €'
    PaymentFactory.create(organization=organization, description=text)

    [row] = rows(b"".join(parts(admin_client, CSV)))

    assert row["description"] == text


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"status": "lost"}, 400),
        ({"q": "pt_1"}, 400),
        ({"organization": "2"}, 400),
        ({"from": "pt_404"}, 404),
        ({"from": "pt_1\0", "status": "failed"}, 404),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(
    admin_client: Client, organization: Organization, asked: dict[str, str], status: int
) -> None:
    answer = admin_client.get(CSV, asked)

    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_export_that_times_out_says_what_to_narrow(admin_client: Client, organization: Organization) -> None:
    with failing_to_list(timeout_error()):
        answer = admin_client.get(CSV, {"status": "open"})

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert "could not be found in time. Choose From and To closer to each other." in answer.content.decode()


def test_there_is_no_other_form_of_file(admin_client: Client, organization: Organization) -> None:
    assert admin_client.get("/admin/payments/payment/export.xlsx").status_code == 404


def test_an_export_is_kept_by_no_cache(admin_client: Client, organization: Organization) -> None:
    assert "no-store" in admin_client.get(CSV).headers["Cache-Control"]
