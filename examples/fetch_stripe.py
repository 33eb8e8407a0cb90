"""Read new and changed charges of Stripe, for import_payments or for a service.

    python3 examples/fetch_stripe.py --organization ID --state FILE [--send URL]

The variable STRIPE_KEY has a key of Stripe that reads charges, disputes, balance transactions and events; PAYMENTS_KEY
has one of the service that can import. STRIPE_URL may have another address of the API.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from apis import Failure, Parameters
from fetching import Page, Provider, run
from members import Members
from pages import Pages, Record
from stripe_charges import PAGES, convert

EVENTS = Pages('Stripe\'s "List all events"', lambda page: page["data"], "object", "event")
DISPUTES = Pages('Stripe\'s "List all disputes"', lambda page: page["data"], "object", "dispute")

# Events are listed for 30 days. The days before the last run that are read again, because events may be listed late.
EVENT_DAYS = timedelta(days=29)
EVENT_OVERLAP = timedelta(hours=1)
EVENT_TYPES = [
    *(f"charge.{name}" for name in ("captured", "expired", "failed", "pending", "refunded", "succeeded", "updated")),
    *(f"charge.dispute.{name}" for name in ("closed", "created", "funds_reinstated", "funds_withdrawn", "updated")),
    "charge.refund.updated",
]


class Stripe(Provider):
    """Stripe's API. Its events name the charges that changed."""

    name = "Stripe"
    url = "https://api.stripe.com"
    key_name, url_name = "STRIPE_KEY", "STRIPE_URL"
    headers = {"Stripe-Version": "2024-06-20"}  # later versions have no `invoice`
    days = 3
    convert = staticmethod(convert)

    def pages(self, since: datetime | None, cursor: str | None) -> Iterator[Page]:
        created: Parameters = {"created[gte]": int(since.timestamp())} if since else {}
        for page in self.walk(PAGES, "charges", {"expand[]": "data.balance_transaction", **created}, cursor):
            yield Page([self.with_dispute(charge) for charge in page.records], page.cursor)

    def changes(self, until: datetime, since: datetime) -> dict[str, Record | None] | None:
        """Return the IDs of charges. An event's own copy of a charge may be older than the charge."""
        created = int((until - EVENT_OVERLAP).timestamp())
        pages = self.walk(EVENTS, "events", {"types[]": EVENT_TYPES, "created[gte]": created})
        charges: dict[str, Record | None] = {charge_of(event): None for page in pages for event in page.records}
        return None if self.api.now and self.api.now - until > EVENT_DAYS else charges

    def payment(self, id_: str) -> Record | None:
        charge = self.api.get(f"/v1/charges/{quote(id_, safe='')}", {"expand[]": "balance_transaction"})
        return None if charge is None else self.with_dispute(charge)

    def with_dispute(self, charge: Record) -> Record:
        """Return the charge with its dispute, and with a lost one first: the list of charges has no disputes."""
        if charge.get("disputed") is not True:
            return charge
        _, disputes = self.read(DISPUTES, "/v1/disputes", {"charge": charge["id"], "limit": 100})
        lost = [dispute for dispute in disputes if dispute.get("status") == "lost"]
        return charge | {"dispute": next(iter([*lost, *disputes]), None)}

    def walk(self, kind: Pages, name: str, parameters: Parameters, cursor: str | None = None) -> Iterator[Page]:
        """Yield the pages of a list. Records that are added meanwhile stand before the first page."""
        while True:
            start: Parameters = {"starting_after": cursor} if cursor else {}
            page, records = self.read(kind, f"/v1/{name}", {"limit": 100, **parameters, **start})
            cursor = last_id(records) if Members(page).require("has_more", bool) else None
            yield Page(records, cursor)
            if cursor is None:
                return


def last_id(records: list[Record]) -> str:
    if not records:
        raise Failure("Stripe: a page is empty, but it is not the last one.")
    return str(records[-1]["id"])


def charge_of(event: Any) -> str:
    """Return the ID of the charge that an event is about: its object is a charge, a dispute or a refund."""
    changed = Members(event).object("data").object("object")
    return str(changed.require("id" if changed.values.get("object") == "charge" else "charge", str))


if __name__ == "__main__":
    run(Stripe, __doc__)
