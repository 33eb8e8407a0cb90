"""What was found, as a file: CSV for spreadsheets, JSON Lines as `export_payments` writes them. Part by part."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from payments.api.pagination import fetch_page
from payments.api.serializers import record
from payments.export import line
from payments.listing import Listing
from payments.rows import Row

# As many as take a worker a tenth of a second, for which other requests wait.
PART_ROWS = 5000

COLUMNS = (
    *("id", "createdAt", "organizationId", "mode", "status", "method", "sequenceType"),
    *("amount", "currency", "amountNet", "currencyNet", "amountRemaining", "currencyRemaining"),
    *("description", "customerId", "paidAt", "expiresAt", "redirectUrl", "webhookUrl", "metadata", "details"),
)

# What a spreadsheet takes for a formula (OWASP, CSV injection).
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

# Without it, Excel reads a file in another encoding.
BYTE_ORDER_MARK = "\ufeff"


class Format(NamedTuple):
    """A form of file: what stands at its head, and how payments are written in it."""

    content_type: str
    head: bytes
    write: Callable[[Sequence[Row]], bytes]


class Part(NamedTuple):
    """A piece of a file, and the id of the payment that the next begins with (None: it is the last)."""

    content: bytes
    next_from: str | None


def export_part(listing: Listing, *, start: str | None, form: Format) -> Part:
    """Return the payments of a listing from the place of `start` on; without, from its beginning.

    :raises UnknownStart: where `start` is not seen
    """
    page = fetch_page(listing, start=start, limit=PART_ROWS)
    head = form.head if start is None else b""
    return Part(head + form.write(page.rows), page.next_from)


def json_lines(rows: Sequence[Row]) -> bytes:
    return b"".join(map(line, rows))


def comma_separated(rows: Sequence[Row]) -> bytes:
    return written(cells(record(row)) for row in rows)


def written(lines: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()


def cells(payment: Any) -> list[str]:
    """Return a payment's cells, in the order of `COLUMNS`. Amounts are numbers; no other text is one, nor a formula."""
    net, remaining = payment.amount_net, payment.amount_remaining
    return [
        *(payment.id, payment.created_at, payment.organization_id, payment.mode, payment.status),
        *(payment.method or "", payment.sequence_type),
        *(payment.amount.value, payment.amount.currency),
        *((net.value, net.currency) if net else ("", "")),
        *((remaining.value, remaining.currency) if remaining else ("", "")),
        inert(payment.description),
        *(payment.customer_id or "", payment.paid_at or "", payment.expires_at or ""),
        *(inert(payment.redirect_url or ""), inert(payment.webhook_url or "")),
        *(inert(bytes(payment.metadata).decode()), inert(bytes(payment.details or b"").decode())),
    ]


def inert(text: str) -> str:
    """Return a text as a spreadsheet shows it, whatever it looks like."""
    return f"'{text}" if text.startswith(FORMULA) else text


FORMATS = {
    "csv": Format("text/csv; charset=utf-8", (BYTE_ORDER_MARK.encode() + written([COLUMNS])), comma_separated),
    "jsonl": Format("application/jsonl", b"", json_lines),
}
