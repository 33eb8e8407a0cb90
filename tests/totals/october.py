"""A month by hand: payments around its end, whose day depends on the kind of day and on the time zone."""

from datetime import UTC, datetime
from decimal import Decimal

from payments.models import Organization
from tests.support.factories import PaymentFactory


def at(day: int, hour: int, minute: int = 0, *, month: int = 10) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def create_october(organization: Organization) -> None:
    """Create 100.00 paid on 31 October, 777.00 created on 30 October and paid in November, and 9,000.00 that failed."""
    PaymentFactory.create(
        id="pt_Hundred",
        organization=organization,
        amount=Decimal("100.00"),
        amount_net=Decimal("97.50"),
        amount_net_currency="EUR",
        amount_remaining=Decimal("60.00"),
        amount_remaining_currency="EUR",
        created_at=at(31, 10),
        paid_at=at(31, 22, 30),  # 23:30 in Amsterdam, 04:15 of 1 November in Kathmandu
    )
    PaymentFactory.create(
        id="pt_Transfer",
        organization=organization,
        ideal=True,
        amount=Decimal("777.00"),
        amount_net=Decimal("800.00"),
        amount_net_currency="USD",
        amount_remaining=Decimal("1.00"),
        amount_remaining_currency="USD",
        created_at=at(30, 23, 30),  # 31 October in Amsterdam and in Kathmandu
        paid_at=at(5, 12, month=11),
    )
    PaymentFactory.create(
        id="pt_Failed",
        organization=organization,
        failed=True,
        amount=Decimal("9000.00"),
        amount_net=Decimal("8990.00"),
        amount_net_currency="EUR",
        created_at=at(31, 11),
        paid_at=at(31, 11, 1),
    )
    PaymentFactory.create(
        id="pt_Open", organization=organization, open=True, amount=Decimal("12.34"), created_at=at(31, 12)
    )
