"""Figures that plain Python adds up from exported records, and writes of payments that change them."""

import json
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from payments.anonymization import anonymize_payments
from payments.models import Access, DayKind, Payment
from payments.totals.figures import Figures
from tests.support.factories import PaymentFactory
from tests.support.lines import MISSING, export_payments, line, store

# Zones with offsets of 30 and 45 minutes, with changes of clocks by 30 minutes, at midnight and before it, and at the
# ends of the world.
ZONES = (
    *("UTC", "Europe/Amsterdam", "Asia/Kathmandu", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Chatham"),
    *("America/New_York", "America/Havana", "Africa/Cairo", "Asia/Beirut", "Pacific/Kiritimati", "Etc/GMT+12"),
)
FIRST, DAYS = date(2026, 3, 20), 230  # they include both changes of clocks
CURRENCIES, METHODS = ("EUR", "USD", "JPY"), ("creditcard", "ideal", "banktransfer")
STATUSES = ("succeeded", "succeeded", "succeeded", "failed", "expired", "canceled", "open", "authorized")


def records(access: Access) -> list[dict[str, Any]]:
    return list(map(json.loads, export_payments(Payment.objects.visible_to(access))))


def day_of_record(record: dict[str, Any], kind: DayKind, zone: ZoneInfo) -> date | None:
    text = record.get(kind.field)
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC).astimezone(zone).date()


def reference(
    payments: Iterable[dict[str, Any]], kind: DayKind, zone: ZoneInfo, *, first: date, last: date, **filters: set[str]
) -> dict[str, Figures]:
    """Return the figures of each currency, added up with `Decimal`."""
    figures: dict[str, dict[str, Decimal]] = {}
    for record in payments:
        day = day_of_record(record, kind, zone)
        values = {"currency": record["amount"]["currency"], "method": record.get("method", "")}
        if day is None or not first <= day <= last or any(values[name] not in filters[name] for name in filters):
            continue
        sums = figures.setdefault(values["currency"], dict.fromkeys(Figures._fields[1:], Decimal()))
        sums["payments"] += 1
        if record["status"] == "succeeded":
            add_succeeded(sums, record)
    return {
        currency: Figures(
            currency, **{name: int(value * (100 if name in MONEY else 1)) for name, value in sums.items()}
        )
        for currency, sums in figures.items()
    }


MONEY = {"paid", "refunded", "fees", "net"}


def add_succeeded(sums: dict[str, Decimal], record: dict[str, Any]) -> None:
    amount = Decimal(record["amount"]["value"])
    sums["succeeded"] += 1
    sums["paid"] += amount
    known = {
        name: Decimal(record[name]["value"])
        for name in ("amountNet", "amountRemaining")
        if name in record and record[name]["currency"] == record["amount"]["currency"]
    }
    if "amountNet" in known:
        sums["net"] += known["amountNet"]
        sums["fees"] += amount - known["amountNet"]
        sums["net_known"] += 1
    if "amountRemaining" in known:
        sums["refunded"] += amount - known["amountRemaining"]
        sums["remaining_known"] += 1


def random_moment(random: Random) -> datetime:
    """Return a moment, which is often near midnight in one of the zones."""
    day = FIRST + timedelta(days=random.randrange(DAYS))
    midnight = datetime.combine(day, datetime.min.time(), ZoneInfo(random.choice(ZONES))).astimezone(UTC)
    away = random.choice((0, 1, -1, random.randrange(-3_600_000, 3_600_000), random.randrange(86_400_000)))
    return midnight + timedelta(milliseconds=away)


def random_values(random: Random, created_at: datetime) -> dict[str, Any]:
    """Return the members of a record that totals depend on."""
    status, currency = random.choice(STATUSES), random.choice(CURRENCIES)
    paid_at = created_at + timedelta(seconds=random.choice((30, 3600, 86_400, 10 * 86_400)))
    is_paid = status == "succeeded" or random.random() < 0.2

    def money(share: float) -> Any:
        if random.random() < share:
            return MISSING
        value = f"{random.randrange(-500, 99_999) / 100:.2f}"
        return {"value": value, "currency": random.choice((currency, currency, "CHF"))}

    return {
        "amount": {"value": f"{random.randrange(1, 99_999) / 100:.2f}", "currency": currency},
        "amountNet": money(0.3),
        "amountRemaining": money(0.3),
        "status": status,
        "method": random.choice((*METHODS, MISSING)),
        "paidAt": paid_at.isoformat(timespec="milliseconds")[:23] if is_paid else MISSING,
    }


class Writer:
    """Writes the payments of an organization and mode at random: by imports, by the ORM, and by anonymization."""

    def __init__(self, random: Random, access: Access) -> None:
        self.random, self.access = random, access
        self.created: dict[str, datetime] = {}

    def write(self) -> None:
        by_orm = (self.save_one, self.update_some, self.create_many, self.anonymize)
        self.random.choice((self.import_some, self.import_some, *by_orm))()

    def import_some(self) -> None:
        ids = [self.new_id(60) for _ in range(self.random.randrange(1, 12))]
        store(self.new_line(payment_id) for payment_id in ids)

    def new_id(self, numbers: int) -> str:
        return f"pt_{self.access.organization_id}{self.access.mode}{self.random.randrange(numbers)}"

    def new_line(self, payment_id: str) -> bytes:
        created_at = self.created.setdefault(payment_id, random_moment(self.random))
        return line(
            id=payment_id,
            organizationId=str(self.access.organization_id),
            mode=self.access.mode,
            createdAt=created_at.isoformat(timespec="milliseconds")[:23],
            **random_values(self.random, created_at),
        )

    def one(self) -> Payment | None:
        payments = Payment.objects.visible_to(self.access)
        return payments.filter(id=self.random.choice(sorted(self.created))).first() if self.created else None

    def save_one(self) -> None:
        if payment := self.one():
            fields = self.random.choice((None, ["paid_at"], ["status"] if payment.paid_at else ["amount"]))
            payment.paid_at, payment.amount = random_moment(self.random), Decimal("4.56")
            payment.status = self.random.choice(STATUSES)
            payment.save(update_fields=fields)

    def update_some(self) -> None:
        payments = Payment.objects.visible_to(self.access).filter(method=self.random.choice(METHODS))
        payments.update(**self.random.choice(({"amount": "7.77"}, {"paid_at": random_moment(self.random)})))

    def create_many(self) -> None:
        values = {"organization_id": self.access.organization_id, "mode": self.access.mode}
        ids = {self.new_id(10**9), self.new_id(10**9)}
        Payment.objects.bulk_create(
            PaymentFactory.build(id=id_, **values, created_at=random_moment(self.random)) for id_ in ids
        )

    def anonymize(self) -> None:
        anonymize_payments(self.access, before=random_moment(self.random), on_progress=lambda _count: None)
