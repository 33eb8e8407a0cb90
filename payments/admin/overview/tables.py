"""Tables of the figures of currencies, statuses and methods. Each row and figure has the list of its payments."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from payments.admin.overview.totals import FINAL, Lists, PeriodTotals, paid_in
from payments.export.reports import known_text
from payments.listing.filter_types import VALUES_MAX
from payments.models import Status
from payments.models.choices import method_label
from payments.templatetags.texts import grouped, money, percent
from payments.totals.figures import KNOWN, NO_METHOD, Figures, number_of_payments, selected, success_percent

METHODS_MAX = 10


class Cell(NamedTuple):
    """A figure. `href` is its list if that is not the list of the row."""

    text: str
    href: str = ""
    note: str = ""


class Row(NamedTuple):
    """A row of figures, the list of its payments, and the length of its bar in percent."""

    name: str
    bar: int
    cells: Sequence[Cell]
    href: str
    style: str = ""


class Table(NamedTuple):
    """A table. `kind` is its class on the page. The first column has the names of the rows."""

    kind: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Row]


def currency_table(totals: PeriodTotals, lists: Lists, before: PeriodTotals | None) -> Table:
    """Return the money of each currency. `before` has the totals of the compared period."""
    payments = sum(figures.succeeded for figures in totals.currencies)
    rows = [
        Row(
            figures.currency,
            bar_length(figures.succeeded, payments),
            [
                Cell(grouped(figures.succeeded)),
                Cell(money(figures.paid), note=f"from {money(before.paid(figures.currency))}" if before else ""),
                *(known_amount(figures, name) for name in KNOWN),
            ],
            lists.paid(figures.currency),
        )
        for figures in totals.currencies
    ]
    return Table("currencies", "Paid by currency", ["Currency", "Succeeded", "Paid", "Refunded", "Fees", "Net"], rows)


def known_amount(figures: Figures, name: str) -> Cell:
    """Return a sum that may be known for some of the payments only."""
    known = getattr(figures, KNOWN[name])
    note = f"known for {grouped(known)}" if 0 < known < figures.succeeded else ""
    return Cell(known_text(figures, name), note=note)


def status_table(totals: PeriodTotals, lists: Lists) -> Table:
    counts = {status: number_of_payments(totals.counts, status) for status in Status}
    rows = [
        Row(
            str(status.label),
            bar_length(count, totals.payments),
            [Cell(grouped(count)), Cell(percent(100 * count / totals.payments))],
            lists.counted(status=[status.value]),
            status.value,
        )
        for status, count in counts.items()
        if count
    ]
    return Table("statuses", "Payments by status", ["Status", "Payments", "Share"], rows)


def method_table(totals: PeriodTotals, lists: Lists, *, currency: str) -> Table:
    """Return the figures of the most frequent methods and of the others, with their money in a currency."""
    counts = Counter({total.method: 0 for total in totals.money})
    for total in totals.counts:
        counts[total.method] += total.payments
    methods = sorted(counts, key=lambda method: (-counts[method], method))
    groups = [(method_label(method) or NO_METHOD, [method]) for method in methods[:METHODS_MAX]]
    groups += [("Others", methods[METHODS_MAX:])] if methods[METHODS_MAX:] else []
    rows = [method_row(name, group, totals, lists, currency=currency) for name, group in groups]
    columns = ["Method", "Payments", "Success rate", *([f"Paid in {currency}"] if currency else [])]
    return Table("methods", "Payments by method", columns, rows)


def method_row(name: str, methods: Sequence[str], totals: PeriodTotals, lists: Lists, *, currency: str) -> Row:
    """Return the figures of methods. They have no lists if no filter selects the methods, which may be unknown."""
    counts = selected(totals.counts, method=methods)
    payments, paid = number_of_payments(counts), paid_in(selected(totals.money, method=methods), currency)
    has_lists = all(methods) and len(methods) <= VALUES_MAX
    success_list = lists.counted(method=methods, status=FINAL) if has_lists else ""
    paid_list = lists.paid(currency, method=methods) if has_lists else ""
    cells = [Cell(grouped(payments)), Cell(percent(success_percent(counts)), success_list)]
    cells += [Cell(money(paid), paid_list)] if currency else []
    row_list = lists.counted(method=methods) if has_lists else ""
    return Row(name, bar_length(payments, totals.payments), cells, row_list)


def bar_length(number: int, total: int) -> int:
    """Return a share in percent; a positive number has a visible bar."""
    return max(1, round(100 * number / total)) if number > 0 else 0
