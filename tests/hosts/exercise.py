"""Runs in the process of another Django project: `python -m tests.hosts.exercise PREFIX` uses the application there.

PREFIX is the path at which the project includes its URLs.

It sends the corpus and walks the list through the project's own WSGI application, and opens the admin's pages. It
prints a report as JSON.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from typing import Any

import django

HOST = "testserver"
DEMO_PAYMENTS = 240
LIMIT = 7
DJANGO_TYPE_MAX = 10_000  # characters of a Content-Type, since Django 6

# Django's middleware adds these to each response of the project.
OF_THE_PROJECT = {"cross-origin-opener-policy", "referrer-policy", "x-frame-options", "content-language", "set-cookie"}


def main(prefix: str) -> None:
    """Run all parts with the application below `prefix`, which is empty or `/billing`."""
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415  needs the settings
    from django.core.wsgi import get_wsgi_application  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    application = get_wsgi_application()
    report = {
        "writes_migrations": writes_migrations(),
        "corpus": run_corpus(application, prefix),
        "walks": run_walks(prefix),
        "documentation": fetch_documentation(prefix),
        "name": fetch_name(prefix),
        "admin": open_admin(prefix),
    }
    print(json.dumps(report))  # noqa: T201


def writes_migrations() -> bool:
    """Return whether `makemigrations` would write a migration, because of a setting of the project."""
    from django.core.management import call_command  # noqa: PLC0415

    try:
        call_command("makemigrations", "payments", check_changes=True, dry_run=True, stdout=StringIO())
    except SystemExit:
        return True
    return False


def script_name() -> str:
    """Return the path at which the whole project is mounted."""
    from django.conf import settings  # noqa: PLC0415

    return settings.FORCE_SCRIPT_NAME or ""


def run_corpus(application: Any, prefix: str) -> dict[str, Any]:
    """Return the number of cases, and those whose response is not the one of the contract."""
    from tests.support.corpus import SUBJECTS, read_cases, store_payments  # noqa: PLC0415
    from tests.support.exchange import call_application  # noqa: PLC0415

    key, failures, number = store_payments(), {}, 0
    for case in (case for subject in SUBJECTS for case in read_cases(subject, host=HOST, key=key)):
        if case.expected.html or is_refused_by_project(case):
            continue
        number += 1
        try:
            expect(case, prefix, partial(call_application, application), key=key)
        except Exception as error:  # noqa: BLE001  the report names it
            failures[case.name] = f"{type(error).__name__}: {error}"[:300]
    return {"cases": number, "failures": failures}


def is_refused_by_project(case: Any) -> bool:
    """Return whether Django refuses the request before a view, because of its host or its Content-Type."""
    headers = case.headers
    is_refused = any("''bogus" in header or "*=bogus" in header or len(header) > DJANGO_TYPE_MAX for header in headers)
    return is_refused or case.name.startswith("hosts.")


def expect(case: Any, prefix: str, send: Any, *, key: str) -> None:
    from tests.support.exchange import Request, Response  # noqa: PLC0415

    own = [(name, value.strip(" ")) for name, _, value in (text.partition(":") for text in case.headers)]
    replaced = {name.lower() for name in [*case.without, *(name for name, _ in own)]}
    defaults = [("Host", HOST), ("Authorization", f"Bearer {key}")]
    remaining = [(name, value) for name, value in defaults if name.lower() not in replaced]
    method, _, target = case.send.partition(" ")
    response = send(Request(f"{method} {prefix}{target}", (*remaining, *own), case.body))
    # Django's middleware for sessions and CSRF adds the cookie.
    headers = tuple(
        (name, value.removesuffix(", Cookie")) for name, value in response.headers if name.lower() not in OF_THE_PROJECT
    )
    expected = replace(case.expected, base=f"{case.expected.base}{script_name()}{prefix}")
    expected.assert_met(Response(response.status, headers, response.body), method=method.upper())


def run_walks(prefix: str) -> dict[str, Any]:
    """Return what is wrong with walks in both directions over demo payments."""
    from django.core.management import call_command  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    from payments.models import Organization, Payment  # noqa: PLC0415
    from tests.support.lines import issue_key  # noqa: PLC0415

    call_command("create_demo_payments", count=DEMO_PAYMENTS, verbosity=0, stdout=StringIO())
    organization = Organization.objects.filter(name__contains="Demo").first() or Organization.objects.latest("id")
    key = issue_key(organization=organization.pk, mode="live")
    payments = Payment.objects.filter(organization=organization, mode="live")
    client = Client(headers={"Authorization": f"Bearer {key}"})
    errors, lengths = [], {}
    for query, order in (("", "-"), ("&sort=asc", ""), ("&status=succeeded", "-")):
        chosen = payments.filter(status="succeeded") if "status" in query else payments
        ids = list(chosen.order_by(f"{order}created_at", f"{order}id").values_list("id", flat=True))
        pages = list(walk(client, f"{prefix}/v2/payments?limit={LIMIT}{query}", "next"))
        back = list(walk(client, pages[-1]["_links"]["self"]["href"], "previous"))
        lengths[query] = len(ids)
        if listed(pages) != ids:
            errors.append(f"next {query}")
        if listed(reversed(back)) != ids:
            errors.append(f"previous {query}")
    feed = list(walk(client, f"{prefix}/v2/payments/changes?limit={LIMIT}", "next"))
    if sorted(listed(feed)) != sorted(payments.values_list("id", flat=True)):
        errors.append("changes")
    today = datetime.now(UTC).date()
    days = f"from={today - timedelta(days=1000)}&to={today}&day=created"
    [totals] = walk(client, f"{prefix}/v2/payments/totals?{days}", "next")
    if sum(row["payments"] for row in totals["_embedded"]["totals"]) != payments.count():
        errors.append("totals")
    return {"errors": errors, "lengths": lengths}


def walk(client: Any, href: str, relation: str) -> Iterator[Any]:
    next_href: str | None = href
    while next_href:
        response = client.get(next_href.removeprefix(f"http://{HOST}{script_name()}"))
        if response.status_code == 503:  # on a busy machine: the next request computes more of the figures
            time.sleep(int(response.headers["Retry-After"]))
            continue
        assert response.status_code == 200, response.content
        page = response.json()
        yield page
        next_href = page["_links"].get(relation, {}).get("href")


def listed(pages: Any) -> list[str]:
    """Return the IDs of all pages. Two pages on a way back may overlap at the start of the list."""
    ids = [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]
    return list(dict.fromkeys(ids))


def fetch_documentation(prefix: str) -> dict[str, int]:
    from django.test import Client  # noqa: PLC0415

    client = Client()
    paths = ("", "index.md", "reference/", "openapi.json", "search.json", "payment.schema.json")
    return {path: client.get(f"{prefix}/docs/{path}").status_code for path in paths}


def fetch_name(prefix: str) -> str:
    """Return the name of the list, which the response to OPTIONS has."""
    from django.test import Client  # noqa: PLC0415

    name: str = Client().options(f"{prefix}/v2/payments").json()["name"]
    return name


def open_admin(prefix: str) -> dict[str, Any]:
    """Return the status of each page of the admin, and whether the list has the payment."""
    from django.apps import apps  # noqa: PLC0415
    from django.contrib.auth import get_user_model  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    from payments.models import PaymentRead  # noqa: PLC0415

    if not apps.is_installed("django.contrib.admin"):
        return {}
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("staff", "staff@shop.example", "password"))
    access = "organization=9001&mode=live"
    pages = {
        "start": "",
        "list": f"payments/payment/?{access}",
        "search": f"payments/payment/?{access}&q=10.00",
        "payment": "payments/payment/pt_5FNewest/change/",
        "reads": "payments/paymentread/",
        "export": f"payments/payment/export.csv?{access}",
        "keys": "payments/apikey/",
        "new key": "payments/apikey/add/",
        "organizations": "payments/organization/",
        "organization": "payments/organization/9001/change/",
    }
    responses = {name: client.get(f"{prefix}/admin/{path}") for name, path in pages.items()}
    return {
        "status": {name: response.status_code for name, response in responses.items()},
        "lists_payment": b"pt_Newest" in responses["list"].content,
        "lists_time": b'"2026-01-03 12:00:00, ' in responses["list"].content,
        "shows_time": b">2026-01-03 12:00:00<" in responses["payment"].content,
        "grouped_ids": [name for name, response in responses.items() if b"9.001" in response.content],
        "reads": PaymentRead.objects.count(),
        "shows_api_link": f"{script_name()}{prefix}/v2/payments/pt_Newest".encode() in responses["payment"].content,
    }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    main(sys.argv[1])
