"""Numbers as people read them."""

from decimal import Decimal

from django import template

register = template.Library()


@register.filter
def grouped(number: int | str) -> str:
    """Return a number, its thousands set apart: `1234567.80` as `1,234,567.80`."""
    return f"{Decimal(number):,}"


@register.filter
def percent(share: float | None) -> str:
    """Return a share of a hundred with one decimal place; a dash for none."""
    return "-" if share is None else f"{share:.1f} %"
