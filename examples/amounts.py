"""Amounts as import_payments reads them."""

import re
from decimal import Decimal
from typing import NamedTuple


class Amount(NamedTuple):
    """An exact amount of a currency."""

    value: Decimal
    currency: str

    @property
    def money(self) -> dict[str, str]:
        return {"value": two_decimals(self.value), "currency": self.currency}

    @property
    def has_two_decimals(self) -> bool:
        return re.search(r"\.[0-9]{2}\Z", two_decimals(self.value)) is not None


def two_decimals(value: Decimal) -> str:
    """Return a value with two decimals. A value that needs more has more: amounts are never rounded."""
    whole, _, fraction = f"{value:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"


def money(amount: Amount | None) -> dict[str, str] | None:
    return amount.money if amount else None
