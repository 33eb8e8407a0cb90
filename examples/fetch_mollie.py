"""Read new and changed payments of Mollie, for import_payments or for a service.

    python3 examples/fetch_mollie.py --organization ID --state FILE [--send URL]

The variable MOLLIE_TOKEN has an API key of Mollie, and PAYMENTS_KEY one of the service that can import. MOLLIE_URL may
have another address of the API.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from apis import Failure, Parameters
from fetching import Page, Provider, run
from members import Members
from mollie_payments import PAGES, convert
from pages import Pages, Record

LISTS = {
    "payments": PAGES,
    "refunds": Pages('Mollie\'s "List all refunds"', lambda page: page["_embedded"]["refunds"], "resource", "refund"),
    "chargebacks": Pages(
        'Mollie\'s "List all chargebacks"', lambda page: page["_embedded"]["chargebacks"], "resource", "chargeback"
    ),
}


class Mollie(Provider):
    """Mollie's API. It has no list of changes, but refunds and chargebacks name the payments that they change."""

    name = "Mollie"
    url = "https://api.mollie.com"
    key_name, url_name = "MOLLIE_TOKEN", "MOLLIE_URL"
    days = 30
    convert = staticmethod(convert)

    def pages(self, since: datetime | None, cursor: str | None) -> Iterator[Page]:
        return self.walk("payments", since, cursor)

    def changes(self, until: datetime, since: datetime) -> dict[str, Record | None]:
        """Return the payments of refunds and chargebacks. These change later too, for example if a refund fails."""
        return {
            Members(record).require("paymentId", str): Members(record).object("_embedded").get("payment", dict)
            for name in ("refunds", "chargebacks")
            for page in self.walk(name, since, embed="payment")
            for record in page.records
        }

    def payment(self, id_: str) -> Record | None:
        record: Record | None = self.api.get(f"/v2/payments/{quote(id_, safe='')}", {})
        return record

    def walk(self, name: str, since: datetime | None, cursor: str | None = None, **parameters: str) -> Iterator[Page]:
        """Yield the pages of a list. Records that are added meanwhile stand before the first page."""
        while True:
            start: Parameters = {"from": cursor} if cursor else {}
            page, records = self.read(LISTS[name], f"/v2/{name}", {"limit": 250, **parameters, **start})
            cursor = cursor_of(page)
            if since and records and is_older(records[-1], since):
                cursor = None
            yield Page(records, cursor)
            if cursor is None:
                return


def cursor_of(page: Mapping[str, Any]) -> str | None:
    """Return the ID at which the next page starts. Only the ID is used, because MOLLIE_URL may be another address."""
    href = Members(page).object("_links").object("next").get("href", str)
    if href is None:
        return None
    try:
        [cursor] = parse_qs(urlsplit(str(href)).query)["from"]
    except (KeyError, ValueError):
        raise Failure("Mollie: the link to the next page has no ID.") from None
    return cursor


def is_older(record: Record, since: datetime) -> bool:
    try:
        return datetime.fromisoformat(record["createdAt"]) < since
    except (KeyError, TypeError, ValueError):
        return False  # the conversion reports it


if __name__ == "__main__":
    run(Mollie, __doc__)
