"""Convert pages of Mollie's "List payments" to JSON Lines for import_payments.

    python3 examples/mollie_payments.py ORGANIZATION PAGE.json... >payments.jsonl

The ID tr_7UhSN1zuXS becomes pt_tr_7UhSN1zuXS. Members that a payment does not have are left out.
"""

import json
from decimal import Decimal
from typing import Any

from amounts import two_decimals
from pages import Pages

PAGES = Pages('Mollie\'s "List payments"', lambda page: page["_embedded"]["payments"], "resource", "payment")
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
    return {**amount, "value": two_decimals(Decimal(amount["value"]))}


def texts(metadata: Any) -> dict[str, str]:
    """Return metadata, which is any JSON value at Mollie, as an object of texts, without members that are null."""
    members = metadata if isinstance(metadata, dict) else {"metadata": metadata}
    present = {name: value for name, value in members.items() if value is not None}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in present.items()}


if __name__ == "__main__":
    PAGES.convert(convert, usage=__doc__)
