"""Amounts as import_payments reads them."""

from decimal import Decimal


def two_decimals(value: Decimal) -> str:
    """Return a value with two decimals. A value that needs more stays as it is: amounts are never rounded."""
    rounded = value.quantize(Decimal("0.01"))
    return str(rounded if rounded == value else value)
