"""Convert pages of Stripe's "List all charges" to JSON Lines for import_payments.

    python3 examples/stripe_charges.py ORGANIZATION PAGE.json... >payments.jsonl

The ID ch_3MmlLr becomes pt_ch_3MmlLr. Members that a payment does not have are left out.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from amounts import two_decimals
from pages import Pages

PAGES = Pages('Stripe\'s "List all charges"', lambda page: page["data"], "object", "charge")

# How many decimals Stripe's whole numbers have, if not two (https://docs.stripe.com/currencies).
NO_DECIMALS = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf"
THREE_DECIMALS = "bhd jod kwd omr tnd"
DECIMALS = dict.fromkeys(NO_DECIMALS.split(), 0) | dict.fromkeys(THREE_DECIMALS.split(), 3)


def convert(charge: dict[str, Any], organization: str) -> dict[str, Any]:
    method = charge.get("payment_method_details") or {}
    created = datetime.fromtimestamp(charge["created"], UTC).isoformat()
    status = status_of(charge)
    paid = status == "succeeded"
    return {
        "id": f"pt_{charge['id']}",
        "mode": "live" if charge["livemode"] else "test",
        "amount": money(charge["amount"], charge["currency"]),
        "amountRemaining": money(charge["amount"] - charge["amount_refunded"], charge["currency"]) if paid else None,
        "description": charge["description"] or "",
        "method": method.get("type"),
        "status": status,
        "organizationId": organization,
        "sequenceType": "oneoff",
        "metadata": charge["metadata"],
        "details": card_details(method["card"], charge) if method.get("card") else None,
        "createdAt": created,
        "paidAt": created if paid else None,
        "customerId": f"ct_{charge['customer']}" if charge["customer"] else None,
    }


def status_of(charge: dict[str, Any]) -> str:
    """Return the status. A charge that is refunded before it is captured was released."""
    if charge["status"] != "succeeded" or charge["captured"]:
        return str(charge["status"])
    return "canceled" if charge["refunded"] else "authorized"


def money(amount: int, currency: str) -> dict[str, str]:
    value = Decimal(amount).scaleb(-DECIMALS.get(currency, 2))
    return {"value": two_decimals(value), "currency": currency.upper()}


def card_details(card: dict[str, Any], charge: dict[str, Any]) -> dict[str, Any]:
    return {
        "cardCountryCode": card["country"],
        "cardHolder": charge["billing_details"]["name"],
        "cardLabel": card["brand"],
        "cardNumber": f"XXXX XXXX XXXX {card['last4']}" if card["last4"] else None,
    }


if __name__ == "__main__":
    PAGES.convert(convert, usage=__doc__)
