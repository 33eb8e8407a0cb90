"""Exports of the payment list, part by part: CSV for spreadsheets, JSON Lines as in `manage.py export_payments`."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from payments.api.pagination import fetch_page
from payments.api.serializers import record
from payments.export import line
from payments.listing import Listing
from payments.rows import Row

# So many rows take a worker a tenth of a second, during which its other requests wait.
PART_ROWS = 5000

COLUMNS = (
    *("id", "createdAt", "organizationId", "mode", "status", "method", "sequenceType"),
    *("amount", "currency", "amountNet", "currencyNet", "amountRemaining", "currencyRemaining"),
    *("description", "customerId", "paidAt", "expiresAt", "redirectUrl", "webhookUrl", "metadata", "details"),
)

# A spreadsheet evaluates a text that starts with one of these (OWASP, CSV injection).
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")

# Excel reads a file as UTF-8 only if it starts with this mark.
BYTE_ORDER_MARK = "\ufeff"


class Format(NamedTuple):
    """A file format: its content type, the start of the file, and the function that writes rows."""

    content_type: str
    start: bytes
    write: Callable[[Sequence[Row]], bytes]


class Part(NamedTuple):
    """A part of a file, and the ID of the payment that starts the next part (None if this is the last part)."""

    content: bytes
    next_from: str | None


def export_part(listing: Listing, *, start: str | None, file_format: Format) -> Part:
    """Return the part of the file that starts at the payment `start`; without `start`, the first part.

    :raises UnknownStart: if the listing's organization and mode have no payment `start`
    """
    page = fetch_page(listing, start=start, limit=PART_ROWS)
    file_start = file_format.start if start is None else b""
    return Part(file_start + file_format.write(page.rows), page.next_from)


def write_json_lines(rows: Sequence[Row]) -> bytes:
    return b"".join(map(line, rows))


def write_csv(rows: Sequence[Row]) -> bytes:
    return csv_lines(cells(record(row)) for row in rows)


def csv_lines(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def cells(payment: Any) -> list[str]:
    """Return a payment's cells in the order of `COLUMNS`. Amounts stay numbers; free text cannot become a formula."""
    net, remaining = payment.amount_net, payment.amount_remaining
    return [
        *(payment.id, payment.created_at, payment.organization_id, payment.mode, payment.status),
        *(payment.method or "", payment.sequence_type),
        *(payment.amount.value, payment.amount.currency),
        *((net.value, net.currency) if net else ("", "")),
        *((remaining.value, remaining.currency) if remaining else ("", "")),
        escape_formula(payment.description),
        *(payment.customer_id or "", payment.paid_at or "", payment.expires_at or ""),
        *(escape_formula(payment.redirect_url or ""), escape_formula(payment.webhook_url or "")),
        *(escape_formula(bytes(payment.metadata).decode()), escape_formula(bytes(payment.details or b"").decode())),
    ]


def escape_formula(text: str) -> str:
    """Return a text that a spreadsheet shows instead of evaluating it."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


FORMATS = {
    "csv": Format("text/csv; charset=utf-8", BYTE_ORDER_MARK.encode() + csv_lines([COLUMNS]), write_csv),
    "jsonl": Format("application/jsonl", b"", write_json_lines),
}
