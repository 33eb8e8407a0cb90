"""The report of a month as text for people, as CSV and as JSON."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import json

from payments.conf import conf
from payments.export.files import CSV_TYPE, csv_lines
from payments.ingest.formats.spreadsheets import protect_formulas
from payments.runtime.terminal import printable
from payments.templatetags.texts import money
from payments.totals.figures import DEFINITIONS, KNOWN, NO_METHOD, Figures
from payments.totals.report import Report, Row, month_of

COLUMNS = ("section", "name", *Row("", Figures("")).members, "openAmount", "organizationId", "mode", "by", "timeZone")

MARKS = "- known for none of the payments, * known for some of them only"


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
        MARKS if has_unknown(report.by_currency) else "",
        open_text(report),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def currency_text(row: Row) -> str:
    figures, succeeded = row.figures, f"{row.figures.succeeded:,}"
    lines = [("Payments", f"{figures.payments:,}", f"  succeeded: {succeeded}"), ("Paid", money(figures.paid), "")]
    for name, known in KNOWN.items():
        note = f"  known for {getattr(figures, known):,} of {succeeded}"
        lines.append((name.capitalize(), known_text(figures, name), note))
    width = max(len(value) for _, value, _ in lines)
    return "\n".join([figures.currency, *(f"  {name:8}  {value:>{width}}{note}" for name, value, note in lines)])


def table_text(heading: str, rows: Sequence[Row]) -> str:
    cells = [
        (row.name or NO_METHOD, row.figures.currency, f"{row.figures.succeeded:,}", *figure_texts(row.figures))
        for row in rows
    ]
    return aligned([(heading, "Cur", "Succeeded", "Paid", "Refunded", "Fees", "Net"), *cells]) if cells else ""


def figure_texts(figures: Figures) -> list[str]:
    """Return the figures of succeeded payments, marked if they are not known for all of them."""
    texts = [money(figures.paid)]
    for name, known in KNOWN.items():
        mark = "*" if 0 < getattr(figures, known) < figures.succeeded else ""
        texts.append(mark + known_text(figures, name))
    return texts


def known_text(figures: Figures, name: str) -> str:
    """Return a figure of succeeded payments that can be unknown, or a dash if it is known for none of them."""
    is_known = getattr(figures, KNOWN[name]) or not figures.succeeded
    return money(getattr(figures, name)) if is_known else "-"


def has_unknown(rows: Sequence[Row]) -> bool:
    return any(getattr(row.figures, known) != row.figures.succeeded for row in rows for known in KNOWN.values())


def open_text(report: Report) -> str:
    heading = f"Still open, of the payments created up to {report.last_day}: "
    if report.open_payments is None:
        return f"{heading}more than {conf.SUMMED_PAYMENTS_MAX:,}."
    if not report.open_payments:
        return f"{heading}none."
    cells = [(currency, f"{payments:,}", money(amount)) for currency, payments, amount in report.open_payments]
    return f"{heading.strip()}\n{aligned([('Currency', 'Payments', 'Amount'), *cells])}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return a table with its first column on the left, and the others on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{name:{widths[0]}} " + " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        for name, *cells in rows
    )


def report_csv(report: Report) -> str:
    """Return a table with a line for each figure. Its first column says what the line counts."""
    sections = {"total": report.by_currency, "method": report.by_method, "day": report.daily}
    month = month_of(report.month)
    lines: list[dict[str, Any]] = [
        {"section": section, "name": month if section == "total" else protect_formulas(row.name), **row.members}
        for section, rows in sections.items()
        for row in rows
    ]
    lines += [{"section": "open", **row.members} for row in report.open_payments or ()]
    of_all = identity(report)
    return csv_lines([COLUMNS, *([(line | of_all).get(column, "") for column in COLUMNS] for line in lines)]).decode()


def identity(report: Report) -> dict[str, str]:
    """Return what the figures of a report are about, beside the month, as members of a JSON object."""
    access, kind, time_zone = report.calendar
    organization_id = str(access.organization_id)
    return {"organizationId": organization_id, "mode": access.mode, "by": kind.value, "timeZone": time_zone}


def report_json(report: Report) -> str:
    open_payments = report.open_payments
    document = {
        **identity(report),
        "month": month_of(report.month),
        "lastDay": report.last_day,
        "isOver": not report.note,
        "note": report.note,
        "totals": [row.members for row in report.by_currency],
        "methods": [{"method": row.name, **row.members} for row in report.by_method],
        "days": [{"day": row.name, **row.members} for row in report.daily],
        "open": None if open_payments is None else [row.members for row in open_payments],
    }
    return json.format(json.encode(document), indent=2).decode() + "\n"


class ReportFormat(NamedTuple):
    """A format of a report: its content type, the suffix of its files, and the function that writes it."""

    content_type: str
    suffix: str
    write: Callable[[Report], str]


FORMATS = {
    "text": ReportFormat("text/plain; charset=utf-8", "txt", report_text),
    "csv": ReportFormat(CSV_TYPE, "csv", report_csv),
    "json": ReportFormat("application/json", "json", report_json),
}
