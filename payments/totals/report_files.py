"""The report of a month as text for people, as CSV and as JSON."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from msgspec import json

from payments.conf import conf
from payments.runtime.terminal import printable
from payments.totals.figures import DEFINITIONS, Figures
from payments.totals.report import Report, Row, decimal_text, month_of

COLUMNS = ("section", "name", *Row("", Figures("")).members, "openAmount")


def report_text(report: Report) -> str:
    """Return the report for a page of paper, 80 columns wide unless the amounts are long."""
    organization, calendar = report.organization, report.calendar
    name, kind = printable(organization.name), calendar.kind.label
    parts = [
        f"{report.month:%B} {report.month.year}: {name} (organization {organization.id}, {calendar.access.mode})",
        f"{kind}, in the time zone {calendar.time_zone}.\n{DEFINITIONS[kind.lower()]}",
        report.note,
        *map(currency_text, report.by_currency),
        table_text("Method", report.by_method),
        table_text("Day", report.daily),
        open_text(report),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def currency_text(row: Row) -> str:
    figures, succeeded = row.figures, f"{row.figures.succeeded:,}"
    net, remaining = (f"  known for {known:,} of {succeeded}" for known in (figures.net_known, figures.remaining_known))
    lines = [
        ("Payments", f"{figures.payments:,}", f"  succeeded: {succeeded}"),
        ("Paid", amount_text(figures.paid), ""),
        ("Refunded", amount_text(figures.refunded), remaining),
        ("Fees", amount_text(figures.fees), net),
        ("Net", amount_text(figures.net), net),
    ]
    width = max(len(value) for _, value, _ in lines)
    return "\n".join([figures.currency, *(f"  {name:8}  {value:>{width}}{note}" for name, value, note in lines)])


def table_text(heading: str, rows: Sequence[Row]) -> str:
    """Return a table of succeeded payments; an empty text without rows."""
    cells = [
        (row.name or "-", row.figures.currency, f"{row.figures.succeeded:,}", *map(amount_text, row.amounts.values()))
        for row in rows
    ]
    return aligned([(heading, "Cur", "Succeeded", "Paid", "Refunded", "Fees", "Net"), *cells]) if cells else ""


def open_text(report: Report) -> str:
    heading = f"Open now, of the payments created up to {report.last_day}: "
    if report.open_payments is None:
        return f"{heading}more than {conf.SUMMED_PAYMENTS_MAX:,}."
    if not report.open_payments:
        return f"{heading}none."
    cells = [(currency, f"{payments:,}", amount_text(amount)) for currency, payments, amount in report.open_payments]
    return f"{heading.strip()}\n{aligned([('Currency', 'Payments', 'Amount'), *cells])}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return a table with its first column on the left, and the others on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{name:{widths[0]}} " + " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        for name, *cells in rows
    )


def amount_text(hundredths: int) -> str:
    return f"{Decimal(decimal_text(hundredths)):,}"


def report_csv(report: Report) -> str:
    """Return a table with a line for each figure. Its first column says what the line counts."""
    sections = {"total": report.by_currency, "method": report.by_method, "day": report.daily}
    lines: list[dict[str, Any]] = [
        {"section": section, "name": month_of(report.month) if section == "total" else row.name, **row.members}
        for section, rows in sections.items()
        for row in rows
    ]
    lines += [{"section": "open", **row} for row in open_members(report) or ()]
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def report_json(report: Report) -> str:
    access = report.calendar.access
    document = {
        "organizationId": str(access.organization_id),
        "mode": access.mode,
        "month": month_of(report.month),
        "by": report.calendar.kind.value,
        "timeZone": report.calendar.time_zone,
        "lastDay": report.last_day,
        "isOver": not report.note,
        "note": report.note,
        "totals": [row.members for row in report.by_currency],
        "methods": named_members("method", report.by_method),
        "days": named_members("day", report.daily),
        "open": open_members(report),
    }
    return json.format(json.encode(document), indent=2).decode() + "\n"


def named_members(name: str, rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [{name: row.name, **row.members} for row in rows]


def open_members(report: Report) -> list[dict[str, Any]] | None:
    """Return the open payments of each currency; None if there are too many to be added up."""
    if report.open_payments is None:
        return None
    return [
        {"currency": currency, "payments": payments, "openAmount": decimal_text(amount)}
        for currency, payments, amount in report.open_payments
    ]


class ReportFormat(NamedTuple):
    """A format of a report: its content type, the suffix of its files, and the function that writes it."""

    content_type: str
    suffix: str
    write: Callable[[Report], str]


FORMATS = {
    "text": ReportFormat("text/plain; charset=utf-8", "txt", report_text),
    "csv": ReportFormat("text/csv; charset=utf-8", "csv", report_csv),
    "json": ReportFormat("application/json", "json", report_json),
}
