"""Convert pages of Mollie's "List payments" to JSON Lines for import_payments.

    python3 examples/mollie_payments.py ORGANIZATION PAGE.json... >payments.jsonl

The ID tr_7UhSN1zuXS becomes pt_tr_7UhSN1zuXS. Members that a payment does not have are left out.
"""

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

SAME = ("mode", "method", "redirectUrl", "webhookUrl", "createdAt", "expiresAt", "paidAt")


def convert(payment: dict[str, Any], organization: str) -> dict[str, Any]:
    details = payment.get("details")
    if details and details.get("cardNumber"):  # Mollie gives the last four digits
        details = {**details, "cardNumber": f"XXXX XXXX XXXX {details['cardNumber'][-4:]}"}
    return {
        "id": f"pt_{payment['id']}",
        **{name: payment.get(name) for name in SAME},
        **{name: money(payment.get(name)) for name in ("amount", "amountRemaining")},
        "description": payment.get("description") or "",
        "status": "succeeded" if payment["status"] == "paid" else payment["status"],
        "organizationId": organization,
        "sequenceType": payment.get("sequenceType") or "oneoff",
        "metadata": texts(payment.get("metadata")),
        "details": details,
        "customerId": f"ct_{payment['customerId']}" if payment.get("customerId") else None,
    }


def money(amount: dict[str, str] | None) -> dict[str, str] | None:
    """Return an amount with two decimals: 500 yen have none at Mollie."""
    if amount is None:
        return None
    exact = Decimal(amount["value"])
    rounded = exact.quantize(Decimal("0.01"))
    return {**amount, "value": str(rounded)} if rounded == exact else amount  # never rounded


def texts(metadata: Any) -> dict[str, str]:
    """Return metadata, which is any JSON value at Mollie, as an object of texts, without members that are null."""
    members = metadata if isinstance(metadata, dict) else {"metadata": metadata}
    present = {name: value for name, value in members.items() if value is not None}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in present.items()}


def read_page(file: str) -> list[dict[str, Any]]:
    try:
        payments: list[dict[str, Any]] = json.loads(Path(file).read_bytes())["_embedded"]["payments"]
        if all(payment["resource"] == "payment" for payment in payments):
            return payments
    except OSError as error:
        sys.exit(f"{file}: {error.strerror}")
    except (ValueError, LookupError, TypeError):  # not JSON, or another form
        pass
    sys.exit(f'{file}: is not a page of Mollie\'s "List payments"')


if __name__ == "__main__":
    if len(sys.argv) < 3:  # noqa: PLR2004  the program, the organization and a file
        sys.exit(__doc__)
    organization, *files = sys.argv[1:]
    for page in list(map(read_page, files)):
        for payment in page:
            print(json.dumps(convert(payment, organization)))
