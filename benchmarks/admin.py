"""Response times of the admin: every page, with payments of thirty days."""

import http.client
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from benchmarks import dataset
from benchmarks.dataset import MODE
from benchmarks.servers import SERVICE, running
from payments.admin.downloads import PART_ROWS
from payments.admin.periods import LENGTHS, Preset
from payments.links import admin_quoted
from payments.models import Payment, SummedDay
from payments.record import Record

DAYS = LENGTHS[Preset.DAYS_30]
LIST_PATH = "/admin/payments/payment/"
ACCESS = {"organization": str(dataset.LARGE.id), "mode": MODE}


class AdminPage(NamedTuple):
    """A page, and a function that prepares the database for each of its requests."""

    name: str
    path: str
    prepare: Callable[[], object] = lambda: None


def records(count: int) -> Iterator[Record]:
    """Yield payments of the days that the start page shows."""
    until = datetime.now(UTC).replace(microsecond=0)
    return dataset.records(count, until=until, span=timedelta(days=DAYS - 1))


def measure_admin(database_url: str, *, rounds: int) -> Iterator[str]:
    """Yield the lines of a table. The first of the rounds is not counted."""
    User.objects.create_superuser("staff")
    browser = Client()
    browser.force_login(User.objects.get())
    cookie = f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"
    yield "| page | median ms | maximum ms |"
    yield "|---|---|---|"
    with running(SERVICE, database_url) as service:
        for page in pages():
            times = [measure(service.base_url, page, cookie) for _ in range(rounds)][1:]
            yield f"| {page.name} | {statistics.median(times):.0f} | {max(times):.0f} |"


def pages() -> Iterator[AdminPage]:
    payments = Payment.objects.filter(organization_id=dataset.LARGE.id, mode=MODE).order_by("created_at", "id")
    oldest, middle = payments[0], payments.filter(created_at__gte=timezone.now() - timedelta(days=DAYS / 3))[0]
    customer_id = payments.exclude(customer_id="")[0].customer_id
    day = f"{middle.created_at:%Y-%m-%d}"
    start_page = f"/admin/?{urlencode(ACCESS)}"
    today = SummedDay.objects.filter(day=timezone.now().date())

    yield AdminPage("start page, no totals cached", start_page, SummedDay.objects.all().delete)
    yield AdminPage("start page, totals of one day missing", start_page, today.delete)
    yield AdminPage("start page, totals cached", start_page)
    yield AdminPage(
        "start page of 90 days, no totals cached", f"{start_page}&period=90d", SummedDay.objects.all().delete
    )
    yield AdminPage("start page of 90 days, totals cached", f"{start_page}&period=90d")
    yield list_page("payments, the newest")
    yield list_page("payments, from the middle", **{"from": middle.id})
    yield list_page("payments, the oldest", **{"from": oldest.id})
    yield list_page("failed", status="failed")
    yield list_page("failed, from the middle", status="failed", **{"from": middle.id})
    yield list_page("directdebit", method="directdebit")
    yield list_page("a method without payments", method="giropay")
    yield list_page("USD, one day", currency="USD", since=day, until=day)
    yield list_page("one customer", q=customer_id)
    yield list_page("search for `84820`", q="84820")
    yield list_page("search for `order`", q="order")
    yield list_page("search for `zebra`", q="zebra")
    yield list_page("search for `subscription order`, no payment", q="subscription order")
    yield list_page("search for `42.32 EUR`", q="42.32 EUR")
    yield AdminPage("one payment", f"{LIST_PATH}{admin_quoted(middle.id)}/change/")
    yield AdminPage("organizations", "/admin/payments/organization/")
    yield AdminPage("API keys", "/admin/payments/apikey/")
    for suffix in ("csv", "jsonl"):
        query = urlencode({**ACCESS, "from": middle.id})
        yield AdminPage(f"download of {PART_ROWS:,} payments as {suffix}", f"{LIST_PATH}export.{suffix}?{query}")


def list_page(name: str, **parameters: str) -> AdminPage:
    return AdminPage(name, f"{LIST_PATH}?{urlencode({**ACCESS, **parameters})}")


def measure(base_url: str, page: AdminPage, cookie: str) -> float:
    """Return the response time of a page in milliseconds."""
    page.prepare()
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc)
    began = time.perf_counter()
    connection.request("GET", page.path, headers={"Cookie": cookie})
    response = connection.getresponse()
    response.read()
    milliseconds = (time.perf_counter() - began) * 1000
    connection.close()
    assert response.status == 200, (page.path, response.status)
    return milliseconds
