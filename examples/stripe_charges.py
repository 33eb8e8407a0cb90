"""Convert pages of Stripe's "List all charges" to JSON Lines for import_payments.

    python3 examples/stripe_charges.py ORGANIZATION PAGE.json... >payments.jsonl

The ID ch_3MmlLr becomes pt_ch_3MmlLr. Members that a payment does not have are left out.
"""

import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

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
    exact = Decimal(amount).scaleb(-DECIMALS.get(currency, 2))
    rounded = exact.quantize(Decimal("0.01"))
    return {"value": str(rounded if rounded == exact else exact), "currency": currency.upper()}  # never rounded


def card_details(card: dict[str, Any], charge: dict[str, Any]) -> dict[str, Any]:
    return {
        "cardCountryCode": card["country"],
        "cardHolder": charge["billing_details"]["name"],
        "cardLabel": card["brand"],
        "cardNumber": f"XXXX XXXX XXXX {card['last4']}" if card["last4"] else None,
    }


def read_page(file: str) -> list[dict[str, Any]]:
    try:
        charges: list[dict[str, Any]] = json.loads(Path(file).read_bytes())["data"]
        if all(charge["object"] == "charge" for charge in charges):
            return charges
    except OSError as error:
        sys.exit(f"{file}: {error.strerror}")
    except (ValueError, LookupError, TypeError):  # not JSON, or another form
        pass
    sys.exit(f'{file}: is not a page of Stripe\'s "List all charges"')


if __name__ == "__main__":
    if len(sys.argv) < 3:  # noqa: PLR2004  the program, the organization and a file
        sys.exit(__doc__)
    organization, *files = sys.argv[1:]
    for page in list(map(read_page, files)):
        for charge in page:
            print(json.dumps(convert(charge, organization)))
