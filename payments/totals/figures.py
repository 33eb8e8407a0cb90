"""What the figures of payments mean: paid, refunded, net, fees, and the success rate.

Money is the money of succeeded payments, and each currency has its own sums. A payment with `paidAt` that has not
succeeded is in no sum of money. All amounts are integers: hundredths of the currency.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from payments.models import IN_PROGRESS, Status

# One sentence for each figure. Pages show them beside the figures.
DEFINITIONS = {
    "paid": "The sum of the amounts of succeeded payments.",
    "refunded": "Of succeeded payments, the amount minus the remaining amount, where the record has one.",
    "fees": "Of succeeded payments, the amount minus the net amount, where the record has one.",
    "net": "The sum of the net amounts of succeeded payments, where the record has one.",
    "success rate": "Succeeded payments, as a share of those that succeeded, failed, expired or were canceled.",
    "still open": "Payments that are open, pending or authorized now.",
    "by paid day": "A payment counts on the day of paidAt. Payments without paidAt do not count.",
    "by created day": "A payment counts on the day of createdAt, even if it was paid later.",
}


class Total(NamedTuple):
    """Sums of payments with the same currency, status and method.

    A net or remaining amount in another currency than the amount counts as unknown.
    """

    currency: str
    status: str
    method: str
    payments: int
    amount: int
    net_known: int  # payments
    net: int
    fees: int
    remaining_known: int  # payments
    refunded: int


class Figures(NamedTuple):
    """The figures of the payments in one currency. Only succeeded payments count as money."""

    currency: str
    payments: int = 0
    succeeded: int = 0
    paid: int = 0
    refunded: int = 0
    fees: int = 0
    net: int = 0
    net_known: int = 0  # succeeded payments
    remaining_known: int = 0  # succeeded payments


# The amounts that not all records have, and the number of payments for which each is known.
KNOWN = {"refunded": "remaining_known", "fees": "net_known", "net": "net_known"}

NO_METHOD = "No method"  # the name of payments without one

GROUPS = ("currency", "status", "method")


def add_up(totals: Iterable[Total]) -> list[Total]:
    """Return one total for each currency, status and method."""
    groups: dict[tuple[str, str, str], list[tuple[int, ...]]] = defaultdict(list)
    for total in totals:
        groups[total[:3]].append(total[3:])
    return [Total(*group, *map(sum, zip(*sums, strict=True))) for group, sums in groups.items()]


def figures_by_currency(totals: Iterable[Total]) -> list[Figures]:
    """Return the figures of each currency, the one with the most payments first."""
    by_currency: dict[str, list[Total]] = defaultdict(list)
    for total in totals:
        by_currency[total.currency].append(total)
    figures = [figures_of(currency, group) for currency, group in by_currency.items()]
    return sorted(figures, key=lambda row: (-row.payments, row.currency))


def figures_of(currency: str, totals: Collection[Total]) -> Figures:
    succeeded = [total for total in totals if total.status == Status.SUCCEEDED]
    return Figures(
        currency,
        payments=number_of_payments(totals),
        succeeded=number_of_payments(succeeded),
        paid=sum(total.amount for total in succeeded),
        refunded=sum(total.refunded for total in succeeded),
        fees=sum(total.fees for total in succeeded),
        net=sum(total.net for total in succeeded),
        net_known=sum(total.net_known for total in succeeded),
        remaining_known=sum(total.remaining_known for total in succeeded),
    )


def number_of_payments(totals: Iterable[Total], status: Status | None = None) -> int:
    return sum(total.payments for total in totals if status in {None, total.status})


def success_percent(totals: Sequence[Total]) -> float | None:
    """Return the success rate in percent; None if no payment is final."""
    final = sum(total.payments for total in totals if total.status not in IN_PROGRESS)
    return 100 * number_of_payments(totals, Status.SUCCEEDED) / final if final else None


def selected(totals: Iterable[Total], **values: Collection[str]) -> list[Total]:
    """Return the totals with one of the values of each field: `selected(totals, method=["ideal"])`."""
    return [total for total in totals if all(getattr(total, name) in allowed for name, allowed in values.items())]
