"""The timeline on a payment's page."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from payments.admin.payments.display import format_duration
from tests.support.factories import NOON, PaymentFactory

PAGE = "/admin/payments/payment/pt_5F1/change/"

SOON, TOMORROW, EARLIER = NOON + timedelta(seconds=72), NOON + timedelta(days=1), NOON - timedelta(days=1)

CREATED = ("Created", NOON, "")
PAID = ("Paid", SOON, "1 min 12 s")
EXPIRES = ("Expires", TOMORROW, "1 d")


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
    assert open_page(admin_client, **values).context["payment"].timeline == expected


def test_page_names_the_time_zone_and_a_missing_time(admin_client: Client, db: None) -> None:
    html = open_page(admin_client, status="failed").content.decode()

    timeline = re.search(r'<ol class="timeline">(.*?)</ol>', html, re.DOTALL)
    assert timeline is not None
    text = " ".join(re.sub(r"<[^>]+>", " ", timeline[1]).split())
    assert text == "Created 2026-01-01 12:00:00 Failed The record has no time for this."
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
