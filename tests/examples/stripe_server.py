"""A server that responds as Stripe's documentation says."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.examples.http_server import HttpServer, Reply, Request

RETENTION = timedelta(days=30)
LIST = {"limit", "starting_after"}
PARAMETERS = {
    "charges": LIST | {"created[gte]", "expand[]"},
    "events": LIST | {"created[gte]", "types[]"},
    "disputes": LIST | {"charge"},
}
UNAUTHORIZED = {"error": {"message": "Invalid API Key provided: sk_test_***6789", "type": "invalid_request_error"}}


@dataclass
class StripeServer(HttpServer):
    """Charges, disputes and events, in the order of their creation. Lists begin with the newest."""

    key: str = "sk_test_stripe0123456789"
    lists: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in PARAMETERS})
    page_records: int = 100

    @property
    def payments(self) -> dict[str, Any]:
        return self.lists["charges"]

    # What happens in the shop

    def create(self, *, created: datetime | None = None, status: str = "pending") -> str:
        """Create a charge. The IDs are not in the order of time."""
        number = len(self.payments) + 1
        id_ = f"ch_{self.prefix}x{number * 7919 % 100003:05}"
        self.payments[id_] = {
            "object": "charge",
            "id": id_,
            "livemode": False,
            "amount": 10_000,
            "amount_captured": 10_000,
            "amount_refunded": 0,
            "balance_transaction": f"txn_{number}",
            "captured": True,
            "created": int((created or self.now).timestamp()),
            "currency": "eur",
            "description": f"Order {number}",
            "disputed": False,
            "metadata": {"version": "1"},
            "payment_method_details": {"type": "ideal", "ideal": {"bank": "rabobank"}},
            "refunded": False,
            "status": status,
        }
        self.add_event("charge.pending", self.payments[id_], now=created)
        return id_

    def set_status(self, id_: str, status: str) -> None:
        self.change(id_, f"charge.{status}", status=status)

    def change(self, id_: str, event: str, **members: Any) -> None:
        charge = self.payments[id_]
        charge.update(members, metadata={"version": str(int(charge["metadata"]["version"]) + 1)})
        self.add_event(event, charge)

    def add_event(self, type_: str, changed: Any, *, now: datetime | None = None) -> None:
        id_ = f"evt_{len(self.lists['events']) + 1}"
        event = {"object": "event", "id": id_, "type": type_, "created": int((now or self.now).timestamp())}
        self.lists["events"][id_] = {**event, "data": {"object": {**changed}}}

    def refund(self, id_: str, cents: int) -> None:
        refunded = self.payments[id_]["amount_refunded"] + cents
        self.change(id_, "charge.refunded", amount_refunded=refunded, refunded=refunded == self.payments[id_]["amount"])

    def charge_back(self, id_: str) -> str:
        dispute_id = f"dp_{len(self.lists['disputes']) + 1}"
        dispute: Any = {"object": "dispute", "id": dispute_id, "charge": id_, "status": "needs_response"}
        dispute |= {"amount": 10_000, "currency": "eur", "reason": "fraudulent", "created": int(self.now.timestamp())}
        self.lists["disputes"][dispute_id] = dispute
        self.change(id_, "charge.updated", disputed=True)
        self.lists["events"].popitem()  # a dispute has an event of its own
        self.add_event("charge.dispute.created", dispute)
        return dispute_id

    def lose_dispute(self, dispute_id: str) -> None:
        dispute = self.lists["disputes"][dispute_id]
        dispute["status"] = "lost"
        self.add_event("charge.dispute.closed", dispute)

    def created(self, record: Any) -> datetime:
        return datetime.fromtimestamp(record["created"], UTC)

    def remaining(self, charge: Any) -> int:
        can_change = charge["status"] == "succeeded" and not charge["disputed"]
        return charge["amount"] - charge["amount_refunded"] if can_change else 0

    def full(self, id_: str) -> Any:
        """Return a charge with its balance transaction and its dispute."""
        disputes = [dispute for dispute in self.lists["disputes"].values() if dispute["charge"] == id_]
        charge = expand(self.payments[id_], ["balance_transaction"])
        return {**charge, "dispute": disputes[0]} if disputes else charge

    # The API

    def respond(self, request: Request) -> Reply:
        if request.token != self.key:
            return Reply(401, UNAUTHORIZED)
        if request.headers.get("Stripe-Version") != "2024-06-20":
            return Reply(400, {"error": {"message": "Invalid Stripe API version"}})
        match request.path.split("/"):
            case ["", "v1", ("charges" | "events" | "disputes") as name]:
                return self.page(name, request)
            case ["", "v1", "charges", id_] if id_ in self.payments:
                return Reply(200, expand(self.payments[id_], request.parameters.get("expand[]", [])))
        return Reply(404, {"error": {"code": "resource_missing"}})

    def page(self, name: str, request: Request) -> Reply:
        parameters = request.parameters
        limit, start = int(parameters.get("limit", ["10"])[0]), parameters.get("starting_after", [""])[0]
        chosen = [record for record in self.lists[name].values() if self.matches(record, parameters)]
        records = sorted(chosen, key=lambda record: record["created"])[::-1]
        ids = [record["id"] for record in records]
        if not parameters.keys() <= PARAMETERS[name] or not 1 <= limit <= 100 or (start and start not in ids):
            return Reply(400, {"error": {"message": "Received unknown parameter"}})
        first = ids.index(start) + 1 if start else 0
        end = first + min(limit, self.page_records)
        members = [name.removeprefix("data.") for name in parameters.get("expand[]", [])]
        page = [expand(record, members) for record in records[first:end]]
        return Reply(200, {"object": "list", "data": page, "has_more": end < len(ids), "url": request.path})

    def matches(self, record: Any, parameters: dict[str, list[str]]) -> bool:
        created = int(parameters.get("created[gte]", ["0"])[0])
        if record["object"] == "event":
            created = max(created, int((self.now - RETENTION).timestamp()))
        return (
            record["created"] >= created
            and record.get("type") in parameters.get("types[]", [record.get("type")])
            and record.get("charge") in parameters.get("charge", [record.get("charge")])
        )


def expand(record: Any, members: list[str]) -> Any:
    """Return a charge with its balance transaction, if that is wanted."""
    if "balance_transaction" not in members or record["status"] != "succeeded":
        return record
    id_, net = record["balance_transaction"], record["amount"] - 35
    transaction = {"object": "balance_transaction", "id": id_, "amount": record["amount"], "currency": "eur"}
    return {**record, "balance_transaction": {**transaction, "fee": 35, "net": net}}
