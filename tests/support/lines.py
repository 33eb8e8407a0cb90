"""Records as JSON Lines, and their import in this process, because manage.py takes a second to start."""

import json
from collections.abc import Iterable, Iterator
from io import BufferedReader, BytesIO
from typing import Any, NoReturn

from payments.export.files import export_line, read_rows
from payments.ingest import ImportResult, Source, import_payments
from payments.ingest.errors import InvalidRecord
from payments.ingest.formats.sources import Location
from payments.models import ApiKey, Organization, PaymentQuerySet

RECORD: dict[str, Any] = {
    "id": "pt_1",
    "resource": "payment",
    "mode": "live",
    "amount": {"value": "10.00", "currency": "EUR"},
    "amountNet": {"value": "9.55", "currency": "EUR"},
    "amountRemaining": {"value": "10.00", "currency": "EUR"},
    "description": "Café № 7",
    "method": "creditcard",
    "redirectUrl": "https://shop.example/orders/7",
    "webhookUrl": "https://shop.example/webhook",
    "status": "succeeded",
    "organizationId": "1",
    "sequenceType": "oneoff",
    "metadata": {"zeta": "1", "alpha": "2"},
    "details": {
        "cardNumber": "4242 42XX XXXX 4242",
        "cardHolder": "A. Baker",
        "cardLabel": "Visa",
        "cardCountryCode": "NL",
    },
    "createdAt": "2018-03-20T13:28:37.123",
    "expiresAt": "2018-03-20T13:43:37.000",
    "paidAt": "2018-03-20T13:29:00.120",
    "customerId": "ct_7",
}
MISSING = object()

# The columns that every CSV file has, and a row.
CSV_CELLS = {
    "id": "pt_1",
    "mode": "live",
    "amount.value": "10.00",
    "amount.currency": "EUR",
    "description": "Tea",
    "status": "open",
    "organizationId": "1",
    "sequenceType": "oneoff",
    "createdAt": "2018-03-20T13:28:37.123",
}


def record(**changes: Any) -> dict[str, Any]:
    """Return the complete record with changed fields. A field whose value is MISSING is left out."""
    return {key: value for key, value in (RECORD | changes).items() if value is not MISSING}


def line(**changes: Any) -> bytes:
    """Return the record as a line of an export, without the line feed."""
    return compact(record(**changes))


def lines_with_order(organization: int, count: int, *, order: str) -> Iterator[bytes]:
    """Yield lines of payments of an organization that have the same metadata."""
    for number in range(count):
        yield line(id=f"pt_{organization}{order}{number}", organizationId=f"{organization}", metadata={"order": order})


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def source(content: bytes, name: str = "payments.jsonl") -> Source:
    return Source(name, BufferedReader(BytesIO(content)))


def store(lines: Iterable[bytes]) -> ImportResult:
    """Import records and create missing organizations. Every record must be valid."""
    return import_payments([source(b"\n".join(lines))], on_refused=fail, create_organizations=True)


def fail(location: Location, error: InvalidRecord) -> NoReturn:
    raise AssertionError(f"{location}: {error}")


def issue_key(*, organization: int, mode: str, scope: str = "read") -> str:
    """Create an API key and return it."""
    _, text = ApiKey.objects.issue(Organization.objects.get(id=organization), mode=mode, scope=scope, name="Tests")
    return text


def export_payments(payments: PaymentQuerySet) -> Iterator[bytes]:
    return map(export_line, read_rows(payments))
