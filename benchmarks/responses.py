"""Response times of named pages in a long list: the admin's pages, as staff request them, and filtered pages."""

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from tqdm import tqdm

from benchmarks.database import LoadedDatabase, log
from benchmarks.dataset import LARGE, MODE, RARE_INTERVAL, SPAN, today
from benchmarks.figures import log_table
from benchmarks.options import Options
from benchmarks.servers import SERVICE, running
from payments.models import DayKind, Organization, Payment, SummedDay
from payments.models.days import days_between
from payments.totals.daily import Calendar, sum_missing_days
from tests.support.admin_site import Staff
from tests.support.connecting import connected_to

ADMIN_REQUESTS = 15  # of each page in a round, so that the default has a 99th percentile
LOGIN = "/admin/login/"
STATUSES = {HTTPStatus.OK, HTTPStatus.FOUND, HTTPStatus.SERVICE_UNAVAILABLE}  # the only match; a timeout
LIST = "/admin/payments/payment/"
ACCESS = {"organization": str(LARGE.id), "mode": MODE}
OVERVIEW = f"/admin/?{urlencode(ACCESS)}"
DAY = f"{today() - SPAN * 0.8:%Y-%m-%d}"
MONTH_END = f"{today() - SPAN * 0.8 + timedelta(days=31):%Y-%m-%d}"
LAST_DAY = f"{today() - SPAN * 0.8 + timedelta(days=30):%Y-%m-%d}"


class NamedPage(NamedTuple):
    """A page, and a function that prepares the database for each of its requests."""

    name: str
    path: str
    prepare: Callable[[], object] = lambda: None


def measure_admin(options: Options, database: LoadedDatabase) -> dict[str, Any]:
    """Measure pages whose days are summed, as after earlier visits, and then those that must sum all days."""
    requests = min(ADMIN_REQUESTS * options.rounds, options.requests)
    times: dict[str, Any] = {}
    with connected_to(database.url):
        cookie = f"sessionid={Staff.log_in(User.objects.create_superuser('staff')).session}"
        for pages in (list(admin_pages()), list(pages_without_sums())):
            log("Summing all days")
            for kind in DayKind:
                calendar = Calendar.of(Organization.objects.get(id=LARGE.id), MODE, kind)
                days = days_between((today() - SPAN).date(), today().date())
                sum_missing_days(calendar, days=days, limit=None)
            times |= measure_responses(database, pages, requests=requests, Cookie=cookie)
    return {"admin": times}


def measure_filters(options: Options, database: LoadedDatabase) -> dict[str, Any]:
    with connected_to(database.url):
        return {"filters": measure_responses(database, list(filtered_pages()), requests=options.rounds)}


def measure_responses(
    database: LoadedDatabase, pages: Sequence[NamedPage], *, requests: int, **headers: str
) -> dict[str, dict[str, float]]:
    """Request the pages in a random order, one at a time. Return their times in milliseconds, without the first."""
    log(f"Measuring {len(pages)} pages: {requests} requests each")
    times: dict[str, list[float]] = {page.name: [] for page in pages}
    timeouts = dict.fromkeys(times, 0)
    with running(SERVICE, database) as service, service.client() as client:
        for _ in tqdm(range(requests + 1), unit=" requests", disable=None):
            for page in random.sample(pages, len(pages)):
                page.prepare()
                began = time.perf_counter()
                response, _ = client.send(page.path, **headers)
                times[page.name].append((time.perf_counter() - began) * 1000)
                assert response.status in STATUSES, (page, response.status)
                assert LOGIN not in response.headers.get("Location", ""), page
                timeouts[page.name] += response.status == HTTPStatus.SERVICE_UNAVAILABLE
    figures = {name: time_figures(*milliseconds) | {"timeouts": timeouts[name]} for name, milliseconds in times.items()}
    log_table([{"page": name, **row} for name, row in figures.items()])
    return figures


def time_figures(first: float, *others: float) -> dict[str, float]:
    p99 = statistics.quantiles(others, n=100, method="inclusive")[-1] if len(others) > 1 else others[0]
    return {"first_ms": round(first, 1), "median_ms": round(statistics.median(others), 1), "p99_ms": round(p99, 1)}


def admin_pages() -> Iterator[NamedPage]:
    """Yield pages of the admin. The ORM is connected to the database."""
    payments = Payment.objects.filter(organization_id=LARGE.id, mode=MODE).order_by("-created_at", "-id")
    tie = payments.filter(description__endswith=" batch", created_at__gte=today() - SPAN / 2 - timedelta(days=1))
    middle, middle_of_tie = tie[0], tie[tie.count() // 2]
    customer_id = payments.exclude(customer_id="")[0].customer_id
    card = next(payment.details for payment in payments[:50] if payment.details and "cardNumber" in payment.details)
    digits = msgspec.json.decode(card)["cardNumber"][-4:]
    yield NamedPage("overview", OVERVIEW)
    yield NamedPage("overview, one day not summed", OVERVIEW, SummedDay.objects.filter(day=today().date()).delete)
    yield NamedPage("overview of 90 days", f"{OVERVIEW}&period=90d")
    yield NamedPage("report of last month", f"/admin/report/?{urlencode(ACCESS)}&month={DAY[:7]}")
    yield list_page("newest payments")
    yield list_page("oldest payments", sort="asc")
    yield list_page("from the middle", **{"from": middle.id})
    yield list_page("a reference that one payment has", q=msgspec.json.decode(middle.metadata)["reference"])
    yield list_page("an order number", q="84820")
    yield list_page("an amount", q="42.32 EUR")
    yield list_page("the last four digits of a card", q=f"**** {digits}")
    yield list_page("a customer", q=customer_id)
    yield list_page("a day", q=DAY)
    yield list_page("a word of most payments", q="order")
    yield list_page("a word of most payments, from the middle", q="order", **{"from": middle.id})
    yield list_page("a word of 3.5 % of the payments, all old", q="retired")
    yield list_page("a word of 5.4 % of the payments, at one instant", q="batch")
    yield list_page("the same, from its middle", q="batch", **{"from": middle_of_tie.id})
    yield list_page("two frequent words that never meet", q="subscription order")
    yield list_page("a word that no payment has", q="zebra")
    yield list_page("failed", status="failed")
    yield list_page("failed of one day", status="failed", since=DAY, until=DAY)
    yield list_page("all of a month", since=DAY, until=LAST_DAY)
    yield list_page("paid in a month", since=DAY, until=LAST_DAY, by="paid")
    yield list_page(
        "10 to 20 EUR by direct debit", method="directdebit", currency="EUR", amount_min="10", amount_max="20"
    )
    yield NamedPage("one payment, with its neighbours", f"{LIST}{quote(middle.id)}/change/")


def pages_without_sums() -> Iterator[NamedPage]:
    """Yield pages for which no day is summed, as after the import of a new database."""
    remove_sums = SummedDay.objects.all().delete
    yield NamedPage("overview, no day summed", OVERVIEW, remove_sums)
    yield list_page("newest payments, no day summed")._replace(prepare=remove_sums)


def list_page(name: str, **parameters: str) -> NamedPage:
    return NamedPage(name, f"{LIST}?{urlencode({**ACCESS, **parameters})}")


def filtered_pages() -> Iterator[NamedPage]:
    """Yield the first page of each filter, and its page from the middle. The ORM is connected to the database."""
    payments = Payment.objects.filter(organization_id=LARGE.id, mode=MODE).order_by("-created_at", "-id")
    middle = payments.filter(created_at__lt=today() - SPAN / 2).exclude(customer_id="")[0]
    filters = {
        "none": "",
        "status=succeeded, most": "status=succeeded",
        "status=failed, 1 in 12": "status=failed",
        f"status=pending, 1 in {RARE_INTERVAL:,}": "status=pending",
        "status=authorized, 1 in 1,000, all old": "status=authorized",
        "status=failed,canceled,pending": "status=failed,canceled,pending",
        "method=directdebit, 1 in 30": "method=directdebit",
        "method=giropay, none": "method=giropay",
        "customerId": f"customerId={middle.customer_id}",
        "sequenceType=first, none": "sequenceType=first",
        "currency=USD, 1 in 13": "currency=USD",
        "currency=CHF, none": "currency=CHF",
        "amount of most": "currency=EUR&amount[gte]=10",
        "amount of few": "currency=EUR&amount[gte]=2000",
        "created on a day": f"createdAt[gte]={DAY}&createdAt[lt]={DAY}T23:59:59.999",
        "paid on a day": f"paidAt[gte]={DAY}&paidAt[lt]={DAY}T23:59:59.999",
        "paid in 31 days": f"paidAt[gte]={DAY}&paidAt[lt]={MONTH_END}",
        "paid in 31 days, created too": f"paidAt[gte]={DAY}&paidAt[lt]={MONTH_END}&createdAt[gte]={DAY}",
        "metadata of one payment": f"metadata[reference]={msgspec.json.decode(middle.metadata)['reference']}",
        "metadata of all payments": "metadata[shop]=web",
        "metadata of none": "metadata[shop]=none",
        "metadata of all, pending": "metadata[shop]=web&status=pending",
        "pending by direct debit, oldest first": "status=pending&method=directdebit&sort=asc",
    }
    for name, query in filters.items():
        yield NamedPage(f"{name}; first page", f"/v2/payments?{query}")
        yield NamedPage(f"{name}; from the middle", f"/v2/payments?{query}&from={middle.id}")
