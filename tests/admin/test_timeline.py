"""The timeline on a payment's page."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import QuerySet
from django.test import Client

from payments.admin.payments.display import Event, format_duration
from payments.anonymization import anonymize_payments
from payments.models import Access, Organization, Payment, StatusChange
from payments.models.identifiers import make_change_id
from tests.support.factories import NOON, PaymentFactory

PAGE = "/admin/payments/payment/pt_5F1/change/"

SOON, TOMORROW, EARLIER = NOON + timedelta(seconds=72), NOON + timedelta(days=1), NOON - timedelta(days=1)

CREATED = ("Created", NOON, "")
PAID = ("Paid", SOON, "1 min 12 s")
EXPIRES = ("Expires", TOMORROW, "1 d")

# Changes that imports made, and their times.
FIRST, SECOND = (make_change_id(NOON + timedelta(hours=hours), 7) for hours in (1, 2))
FIRST_TIME, SECOND_TIME = NOON + timedelta(hours=1), NOON + timedelta(hours=2)


def open_page(client: Client, **values: Any) -> Any:
    PaymentFactory.create(id="pt_1", **{"created_at": NOON, "paid_at": None, **values})
    return client.get(PAGE)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"status": "open"}, [CREATED]),
        ({"status": "pending", "expires_at": TOMORROW}, [CREATED, EXPIRES]),
        ({"status": "authorized", "expires_at": TOMORROW}, [CREATED, EXPIRES]),
        ({"status": "succeeded", "paid_at": SOON}, [CREATED, PAID]),
        ({"status": "succeeded", "paid_at": SOON, "expires_at": TOMORROW}, [CREATED, PAID, EXPIRES]),
        ({"status": "failed"}, [CREATED, ("Failed", None, "")]),
        ({"status": "failed", "paid_at": SOON, "expires_at": TOMORROW}, [CREATED, ("Failed", None, "")]),
        ({"status": "canceled", "expires_at": TOMORROW}, [CREATED, ("Canceled", None, "")]),
        ({"status": "expired", "expires_at": TOMORROW}, [CREATED, ("Expired", TOMORROW, "1 d")]),
        ({"status": "expired"}, [CREATED, ("Expired", None, "")]),
        (
            {"status": "expired", "expires_at": EARLIER},
            [CREATED, ("Expired", EARLIER, "")],
        ),
    ],
)
def test_timeline_ends_with_the_state_of_an_unpaid_payment(
    admin_client: Client, db: None, values: dict[str, Any], expected: list[tuple[str, datetime | None, str]]
) -> None:
    *events, updated = sorted(open_page(admin_client, **values).context["payment"].timeline, key=is_update)

    assert [(event.name, event.time, event.since_creation) for event in events] == expected
    assert updated.name == "Last updated by an import"


def is_update(event: Event) -> bool:
    return event.name == "Last updated by an import"


@pytest.mark.parametrize(
    ("status", "changes", "expected"),
    [
        ("open", [], [("Last updated by an import", SECOND_TIME, 0)]),
        ("failed", [], [("Failed", None, 0), ("Last updated by an import", SECOND_TIME, 0)]),
        ("failed", [(SECOND, "failed")], [("Reported as failed", SECOND_TIME, 8)]),
        (
            "succeeded",
            [(FIRST, "pending"), (SECOND, "succeeded")],
            [("Paid", SOON, 0), ("Reported as pending", FIRST_TIME, 7), ("Reported as paid", SECOND_TIME, 8)],
        ),
        (
            "open",
            [(FIRST, "open")],
            [("Reported as open", FIRST_TIME, 7), ("Last updated by an import", SECOND_TIME, 0)],
        ),
    ],
)
def test_timeline_shows_when_imports_reported_each_status(
    admin_client: Client,
    organization: Organization,
    status: str,
    changes: list[tuple[int, str]],
    expected: list[tuple[str, datetime | None, int]],
) -> None:
    paid_at = SOON if status == "succeeded" else None
    PaymentFactory.create(id="pt_1", organization=organization, status=status, paid_at=paid_at, created_at=NOON)
    QuerySet.update(Payment.objects.all(), change_id=SECOND)
    for number, (change_id, reported) in enumerate(changes):
        import_id = 7 + (change_id == SECOND)
        StatusChange.objects.create(
            organization=organization, payment_id="pt_1", change_id=change_id, status=reported, import_id=import_id
        )
        StatusChange.objects.create(
            organization=organization, payment_id=f"pt_x{number}", change_id=change_id, status="failed", import_id=9
        )

    created, *events = admin_client.get(PAGE).context["payment"].timeline

    assert created.name == "Created"
    assert [(event.name, event.time, event.import_id) for event in events] == expected


def test_removal_of_personal_data_is_shown_instead_of_the_update(
    admin_client: Client, organization: Organization
) -> None:
    PaymentFactory.create(id="pt_1", organization=organization, customer_id="ct_7", created_at=NOON)
    anonymize_payments(Access(organization.id, "live"), customer_id="ct_7", on_progress=lambda _: None)
    removed_at = Payment.objects.get().anonymized_at

    page = admin_client.get(PAGE)

    assert [event.name for event in page.context["payment"].timeline] == ["Created", "Paid", "Personal data removed"]
    history = f"/admin/payments/organization/{organization.id}/history/"
    assert f'Personal data removed on {removed_at:%-d %b %Y} · <a href="{history}">History</a>' in page.content.decode()


def test_page_names_the_time_zone_and_a_missing_time(admin_client: Client, db: None) -> None:
    html = open_page(admin_client, status="failed").content.decode()

    timeline = re.search(r'<ol class="timeline">(.*?)</ol>', html, re.DOTALL)
    assert timeline is not None
    text = " ".join(re.sub(r"<[^>]+>", " ", timeline[1]).split())
    assert text.startswith("Created 2026-01-01 12:00:00 Failed Time not recorded Last updated by an import 20")
    assert '<time datetime="2026-01-01T12:00:00+00:00" title="2026-01-01 12:00:00 UTC">' in timeline[1]
    assert "Timeline (UTC)" in html


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(seconds=-1), ""),
        (timedelta(), ""),
        (timedelta(milliseconds=600), "1 s"),
        (timedelta(seconds=59, milliseconds=600), "1 min"),
        (timedelta(hours=3, minutes=5, seconds=7), "3 h 5 min"),
        (timedelta(days=2, seconds=1), "2 d 1 s"),
    ],
)
def test_duration_has_its_two_largest_units(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text
