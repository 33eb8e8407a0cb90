"""Texts that compare a figure with the one of the period before."""

from payments.templatetags.numbers import money

# The smallest change that is not rounded to zero.
SHOWN_MIN = 0.05


def compare_numbers(number: int, previous: int) -> str:
    """Return the change of a number of payments: `Up 12.5 %`."""
    return change_in_percent(number, previous) if previous else "No payments before"


def compare_amounts(hundredths: int, previous: int) -> str:
    """Return the change of a paid amount. A percentage needs a positive amount to start from."""
    return change_in_percent(hundredths, previous) if previous > 0 else f"{money(previous)} before"


def compare_rates(percent: float, previous: float | None) -> str:
    """Return the change of a success rate: `Down 1.5 percentage points`."""
    if previous is None:
        return "No completed payments before"
    return describe(percent - previous, unit=" percentage points")


def change_in_percent(number: int, previous: int) -> str:
    return describe(100 * (number - previous) / previous, unit=" %")


def describe(change: float, *, unit: str) -> str:
    if change == 0:
        return "No change"
    size = f"{abs(change):,.1f}" if abs(change) >= SHOWN_MIN else "less than 0.1"
    return f"{'Up' if change > 0 else 'Down'} {size}{unit}"
