"""A server that responds as Mollie's documentation says."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.examples.http_server import HttpServer, Reply, Request

PARAMETERS = {
    "payments": {"limit", "from"},
    "refunds": {"limit", "from", "embed"},
    "chargebacks": {"limit", "from", "embed"},
}
MEMBERS = {"payments": "payment", "refunds": "refund", "chargebacks": "chargeback"}
UNAUTHORIZED = {
    "status": 401,
    "title": "Unauthorized Request",
    "detail": "Missing authentication, or failed to authenticate",
}


def euros(cents: int) -> dict[str, str]:
    return {"value": f"{cents // 100}.{cents % 100:02}", "currency": "EUR"}


@dataclass
class MollieServer(HttpServer):
    """Payments, refunds and chargebacks by ID, in the order of their creation. Lists begin with the newest."""

    key: str = "test_mollie0123456789"
    lists: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in MEMBERS})
    page_records: int = 250

    @property
    def payments(self) -> dict[str, Any]:
        return self.lists["payments"]

    # What happens in the shop

    def create(self, *, created: datetime | None = None, status: str = "open") -> str:
        """Create a payment. The IDs are not in the order of time."""
        number = len(self.payments) + 1
        id_ = f"tr_{self.prefix}x{number * 7919 % 100003:05}"
        self.payments[id_] = {
            "resource": "payment",
            "id": id_,
            "mode": "test",
            "createdAt": (created or self.now).isoformat(),
            "amount": euros(10_000),
            "description": f"Order {number}",
            "method": "ideal",
            "metadata": {"version": "1"},
            "sequenceType": "oneoff",
            "profileId": "pfl_1",
        }
        self.set_status(id_, status)
        return id_

    def set_status(self, id_: str, status: str) -> None:
        payment = self.change(id_, status=status)
        if status == "paid":
            self.change(id_, paidAt=self.now.isoformat(), amountRefunded=euros(0), amountRemaining=euros(10_000))
            payment["metadata"]["version"] = str(int(payment["metadata"]["version"]) - 1)

    def change(self, id_: str, **members: Any) -> Any:
        payment = self.payments[id_]
        version = str(int(payment["metadata"]["version"]) + 1)
        payment.update(members, metadata={"version": version})
        return payment

    def refund(self, id_: str, cents: int) -> str:
        refund_id = f"re_{len(self.lists['refunds']) + 1}"
        self.add("refunds", refund_id, id_, status="pending", amount=euros(cents))
        self.give_back(id_, "amountRefunded", cents)
        return refund_id

    def fail_refund(self, refund_id: str) -> None:
        refund = self.lists["refunds"][refund_id]
        refund["status"] = "failed"
        self.give_back(refund["paymentId"], "amountRefunded", -cents_of(refund["amount"]))

    def charge_back(self, id_: str) -> None:
        cents = cents_of(self.payments[id_]["amountRemaining"])
        self.add("chargebacks", f"chb_{len(self.lists['chargebacks']) + 1}", id_, amount=euros(cents))
        self.give_back(id_, "amountChargedBack", cents)

    def add(self, name: str, id_: str, payment: str, **members: Any) -> None:
        created = {"createdAt": self.now.isoformat(), "paymentId": payment}
        self.lists[name][id_] = {"resource": MEMBERS[name], "id": id_, **created, **members}

    def give_back(self, id_: str, name: str, cents: int) -> None:
        payment = self.payments[id_]
        given = cents_of(payment.get(name, euros(0))) + cents
        left = cents_of(payment["amountRemaining"]) - cents
        self.change(id_, **{name: euros(given)}, amountRemaining=euros(left))

    def created(self, record: Any) -> datetime:
        return datetime.fromisoformat(record["createdAt"])

    def remaining(self, payment: Any) -> int:
        return cents_of(payment.get("amountRemaining", euros(0)))

    # The API

    def respond(self, request: Request) -> Reply:
        if request.token != self.key:
            return Reply(401, UNAUTHORIZED)
        match request.path.split("/"):
            case ["", "v2", ("payments" | "refunds" | "chargebacks") as name]:
                return self.page(name, request)
            case ["", "v2", "payments", id_] if id_ in self.payments and not request.parameters:
                return Reply(200, self.payments[id_])
        return Reply(404, {"status": 404, "title": "Not Found"})

    def page(self, name: str, request: Request) -> Reply:
        parameters = {name: values[0] for name, values in request.parameters.items()}
        limit, start = int(parameters.get("limit", 50)), parameters.get("from")
        records = sorted(self.lists[name].values(), key=lambda record: record["createdAt"])[::-1]
        ids = [record["id"] for record in records]
        if not parameters.keys() <= PARAMETERS[name] or not 1 <= limit <= 250 or (start and start not in ids):
            return Reply(400, {"status": 400, "title": "Bad Request"})
        first = ids.index(start) if start else 0
        end = first + min(limit, self.page_records)
        page = [self.embedded(record, parameters) for record in records[first:end]]
        href = f"https://api.mollie.com/v2/{name}?from={ids[end]}&limit={limit}" if end < len(ids) else None
        link = {"href": href, "type": "application/hal+json"} if href else None
        return Reply(200, {"count": len(page), "_embedded": {name: page}, "_links": {"next": link}})

    def embedded(self, record: Any, parameters: dict[str, str]) -> Any:
        if parameters.get("embed") != "payment":
            return record
        return {**record, "_embedded": {"payment": self.payments[record["paymentId"]]}}


def cents_of(amount: dict[str, str]) -> int:
    return int(amount["value"].replace(".", ""))
