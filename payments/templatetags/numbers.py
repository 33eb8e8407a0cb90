"""Template filters that format numbers."""

from decimal import Decimal

from django import template

register = template.Library()


@register.filter
def grouped(number: int | str) -> str:
    """Return a number with thousands separators: `1,234,567.80` for `1234567.80`."""
    return f"{Decimal(number):,}"


@register.filter
def money(hundredths: int) -> str:
    """Return an amount with two decimal places and thousands separators: `1,234.50` for 123450."""
    return f"{Decimal(hundredths).scaleb(-2):,.2f}"


@register.filter
def percent(number: float | None) -> str:
    """Return a percentage with one decimal place, or a dash if there is none."""
    return "-" if number is None else f"{number:.1f} %"
