"""How long staff wait: each page of the admin, asked of a server, with a million payments of thirty days."""

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
from benchmarks.pages import MODE
from benchmarks.servers import SERVICE, running
from payments.admin.downloads import PART_ROWS
from payments.admin.overview import DAYS
from payments.links import admin_quoted
from payments.models import Payment, SummedDay
from payments.record import Record

LIST = "/admin/payments/payment/"
SCOPE = {"organization": str(dataset.LARGE.id), "mode": MODE}


class Timed(NamedTuple):
    """A page, and what is done before it is asked for."""

    name: str
    path: str
    before: Callable[[], object] = lambda: None


def records(count: int) -> Iterator[Record]:
    """Yield payments of the days that the start page shows."""
    until = datetime.now(UTC).replace(microsecond=0)
    return dataset.records(count, until=until, span=timedelta(days=DAYS - 1))


def measure_admin(database_url: str, *, rounds: int) -> Iterator[str]:
    """Yield the lines of a table."""
    User.objects.create_superuser("staff")
    browser = Client()
    browser.force_login(User.objects.get())
    cookie = f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"
    yield "| page | median ms | longest |"
    yield "|---|---|---|"
    with running(SERVICE, database_url) as service:
        for page in pages():
            times = [waited(service.base_url, page, cookie) for _ in range(rounds)][1:]
            yield f"| {page.name} | {statistics.median(times):.0f} | {max(times):.0f} |"


def pages() -> Iterator[Timed]:
    """Yield what is asked for, from places all over the list."""
    ordered = Payment.objects.filter(organization_id=dataset.LARGE.id, mode=MODE).order_by("created_at", "id")
    oldest, middle = ordered[0], ordered.filter(created_at__gte=timezone.now() - timedelta(days=DAYS / 3))[0]
    customer = ordered.exclude(customer_id="")[0].customer_id
    today = SummedDay.objects.filter(day=timezone.now().date())

    yield Timed("start page, nothing summed", f"/admin/?{urlencode(SCOPE)}", SummedDay.objects.all().delete)
    yield Timed("start page, the days but one summed", f"/admin/?{urlencode(SCOPE)}", today.delete)
    yield Timed("start page, all summed", f"/admin/?{urlencode(SCOPE)}")
    yield listed("payments, the newest")
    yield listed("payments, from the middle", **{"from": middle.id})
    yield listed("payments, the oldest", **{"from": oldest.id})
    yield listed("failed", status="failed")
    yield listed("failed, from the middle", status="failed", **{"from": middle.id})
    yield listed("directdebit", method="directdebit")
    yield listed("a method that there is not", method="giropay")
    yield listed(
        "USD, of a day", currency="USD", since=f"{middle.created_at:%Y-%m-%d}", until=f"{middle.created_at:%Y-%m-%d}"
    )
    yield listed("a customer's", q=customer)
    yield listed("description begins with `Order 84820`", q="Order 84820")
    yield listed("description begins with `Order 8`", q="Order 8")
    yield listed("description begins with `Zebra`", q="Zebra")
    yield Timed("a payment's page", f"{LIST}{admin_quoted(middle.id)}/change/")
    yield Timed("organizations", "/admin/payments/organization/")
    yield Timed("keys", "/admin/payments/apikey/")
    for suffix in ("csv", "jsonl"):
        query = urlencode({**SCOPE, "from": middle.id})
        yield Timed(f"{PART_ROWS:,} payments as {suffix}", f"{LIST}export.{suffix}?{query}")


def listed(name: str, **asked: str) -> Timed:
    return Timed(name, f"{LIST}?{urlencode({**SCOPE, **asked})}")


def waited(base_url: str, page: Timed, cookie: str) -> float:
    """Return how many milliseconds a page takes."""
    page.before()
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc)
    began = time.perf_counter()
    connection.request("GET", page.path, headers={"Cookie": cookie})
    answer = connection.getresponse()
    answer.read()
    milliseconds = (time.perf_counter() - began) * 1000
    connection.close()
    assert answer.status == 200, (page.path, answer.status)
    return milliseconds
