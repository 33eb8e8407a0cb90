"""Response times of the admin's payment list in a long list: searches, filters and pages, as staff request them."""

import random
import statistics
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus

import msgspec
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from msgspec import Raw
from tqdm import tqdm

from benchmarks import dataset
from benchmarks.admin import LIST_PATH, AdminPage, list_page, request
from benchmarks.dataset import MODE
from benchmarks.servers import SERVICE, running
from payments.links import admin_quoted
from payments.models import Payment
from payments.record import Record, encode

# Of each page. The slowest of 100 is the 99th percentile.
REQUESTS = 101

OLD_SHARE = 0.035  # of the payments; only they contain the word `retired`


def records(count: int) -> Iterator[Record]:
    """Yield payments with an order number that one has, a word that many old ones have, and a word of the tie."""
    old_until, tie = count * OLD_SHARE, dataset.tie_of(count)
    for number, record in enumerate(dataset.records(count)):
        words = [record.description]
        words += ["retired"] if number < old_until else []
        words += ["batch"] if number in tie else []
        yield msgspec.structs.replace(
            record, description=" ".join(words), metadata=Raw(encode({"reference": f"R{number}"}))
        )


def measure_search(database_url: str, *, rows: int) -> Iterator[str]:
    """Yield the lines of a table. The pages are requested in a random order; the first request is not counted."""
    User.objects.create_superuser("staff")
    browser = Client()
    browser.force_login(User.objects.get())
    cookie = f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"
    times: dict[AdminPage, list[float]] = {page: [] for page in pages(rows)}
    failures: Counter[AdminPage] = Counter()
    with running(SERVICE, database_url) as service:
        for _ in tqdm(range(REQUESTS), unit=" rounds", disable=None):
            for page in random.sample(list(times), len(times)):
                milliseconds, status = request(service.base_url, page.path, cookie)
                times[page].append(milliseconds)
                failures[page] += status != HTTPStatus.OK
    yield "| page | first ms | median ms | p99 ms | timeouts |"
    yield "|---|---|---|---|---|"
    for page, (first, *others) in times.items():
        p99 = statistics.quantiles(others, n=100)[-1]
        yield f"| {page.name} | {first:.0f} | {statistics.median(others):.0f} | {p99:.0f} | {failures[page]} |"


def pages(rows: int) -> Iterator[AdminPage]:
    payments = Payment.objects.filter(organization_id=dataset.LARGE.id, mode=MODE).order_by("-created_at", "-id")
    tie = payments.filter(created_at=dataset.UNTIL - dataset.SPAN / 2)
    middle, middle_of_tie = tie[0], tie[rows // 50]
    customer_id = payments.exclude(customer_id="")[0].customer_id
    card = next(payment.details for payment in payments[:50] if payment.details and "cardNumber" in payment.details)
    digits = msgspec.json.decode(card)["cardNumber"][-4:]

    yield list_page("newest payments")
    yield list_page("oldest payments", sort="asc")
    yield list_page("from the middle", **{"from": middle.id})
    yield list_page("one order, `R…`", q=f"R{rows // 3}")
    yield list_page("order number, `84820`", q="84820")
    yield list_page("amount, `42.32 EUR`", q="42.32 EUR")
    yield list_page("last four digits of a card", q=f"**** {digits}")
    yield list_page("customer", q=customer_id)
    yield list_page("day, `2025-03-01`", q="2025-03-01")
    yield list_page("word of most payments, `order`", q="order")
    yield list_page("the same, from the middle", q="order", **{"from": middle.id})
    yield list_page("word of many old payments, `retired`", q="retired")
    yield list_page("word of one instant, `batch`", q="batch")
    yield list_page("the same, from its middle", q="batch", **{"from": middle_of_tie.id})
    yield list_page("two words that never meet, `subscription order`", q="subscription order")
    yield list_page("no match, `zebra`", q="zebra")
    yield list_page("failed", status="failed")
    yield list_page(
        "directdebit, EUR, 10 to 20", method="directdebit", currency="EUR", amount_min="10", amount_max="20"
    )
    yield list_page("failed of a day", status="failed", since="2025-03-01", until="2025-03-01")
    yield list_page("all of a month", since="2025-03-01", until="2025-03-31")
    yield AdminPage("one payment of the list", f"{LIST_PATH}{admin_quoted(middle.id)}/change/")
