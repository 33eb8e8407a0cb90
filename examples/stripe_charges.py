"""Convert pages of Stripe's "List all charges" to JSON Lines for import_payments.

    python3 examples/stripe_charges.py ORGANIZATION PAGE.json... >payments.jsonl

The ID ch_3MmlLr becomes pt_ch_3MmlLr. REFERENCES become metadata, such as stripe.payment_intent, and FACTS become
details. Other members that a payment does not have are left out. Other objects may be expanded. The page - is read from
stdin.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from amounts import Amount, money
from members import Members, add_references, present, texts
from pages import Pages

PAGES = Pages('Stripe\'s "List all charges"', lambda page: page["data"], "object", "charge")
REFERENCES = (
    *("application", "application_fee", "balance_transaction", "dispute", "failure_balance_transaction", "invoice"),
    *("on_behalf_of", "payment_intent", "payment_method", "review", "source_transfer", "transfer", "transfer_group"),
)
FACTS = {
    "failureReason": "failure_code",
    "failureMessage": "failure_message",
    "statementDescriptor": "calculated_statement_descriptor",
    "receiptNumber": "receipt_number",
}
OUTCOME = {"outcomeType": "type", "outcomeReason": "reason", "sellerMessage": "seller_message"}
CARDS = ("card", "card_present", "interac_present")

# How many decimals Stripe's whole numbers have, if not two (https://docs.stripe.com/currencies).
NO_DECIMALS = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf"
THREE_DECIMALS = "bhd jod kwd omr tnd"
DECIMALS = dict.fromkeys(NO_DECIMALS.split(), 0) | dict.fromkeys(THREE_DECIMALS.split(), 3)


def convert(charge: dict[str, Any], organization: str) -> dict[str, Any]:
    """Return the charge as a record of import_payments.

    :raises InvalidMember: a member has an unknown form
    """
    members = Members(charge)
    for name in ("amount", "created"):
        members.require(name, int)
    created = time_of(members, "created")
    status = status_of(members)
    net = net_of(members)
    customer = members.id_of("customer")
    return {
        "id": f"pt_{members.require('id', str)}",
        "mode": "live" if members.require("livemode", bool) else "test",
        "amount": money(amount_of(members, "amount")),
        "amountNet": net.money if net and net.has_two_decimals else None,
        "amountRemaining": money(remaining(members)) if status == "succeeded" else None,
        "description": members.get("description", str) or "",
        "method": members.object("payment_method_details").get("type", str),
        "status": status,
        "organizationId": organization,
        "sequenceType": "oneoff",
        "metadata": add_references(texts(charge.get("metadata")), references_of(members)),
        "details": details_of(members) or None,
        "createdAt": created,
        "paidAt": created if status == "succeeded" else None,
        "customerId": f"ct_{customer}" if customer else None,
    }


def status_of(charge: Members) -> str:
    """Return the status. A charge that is refunded before it is captured was released."""
    status = str(charge.require("status", str))
    if status != "succeeded" or charge.require("captured", bool):
        return status
    return "canceled" if charge.require("refunded", bool) else "authorized"


def amount_of(members: Members, name: str) -> Amount | None:
    """Return an amount in the object's currency. It is a whole number of the currency's smallest unit."""
    value = members.get(name, int)
    if value is None:
        return None
    currency = members.require("currency", str)
    return Amount(Decimal(value).scaleb(-DECIMALS.get(currency.lower(), 2)), currency.upper())


def time_of(members: Members, name: str) -> str | None:
    seconds = members.get(name, int)
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        raise members.error(name, "a whole number of seconds since 1970") from None


def expanded(members: Members, name: str) -> Members:
    """Return the members of another object; none if the page has only its ID."""
    return members.object(name) if isinstance(members.values.get(name), dict) else Members({})


def net_of(charge: Members) -> Amount | None:
    """Return what the account gets after Stripe's fees, in the currency of the account."""
    return amount_of(expanded(charge, "balance_transaction"), "net")


def charged_back(charge: Members) -> Amount | None:
    """Return the amount of a dispute that the account has lost."""
    dispute = expanded(charge, "dispute")
    return amount_of(dispute, "amount") if dispute.get("status", str) == "lost" else None


def remaining(charge: Members) -> Amount | None:
    """Return the remaining amount: without refunds and chargebacks, at most the captured amount."""
    amount, refunded = amount_of(charge, "amount"), amount_of(charge, "amount_refunded")
    if amount is None or refunded is None:
        return None
    left = amount.value - refunded.value
    if (lost := charged_back(charge)) and lost.currency == amount.currency:
        left -= lost.value
    captured = amount_of(charge, "amount_captured")
    return Amount(min(left, captured.value) if captured else left, amount.currency)


def method_of(charge: Members) -> Members:
    """Return the members that depend on the payment method. The path hides its name, which may be any text."""
    details = charge.object("payment_method_details")
    return Members(details.values.get(details.get("type", str)) or {}, "payment_method_details.*.")


def references_of(charge: Members) -> dict[str, str | None]:
    """Return the IDs of other records, by their names in the metadata."""
    references = {name: charge.id_of(name) for name in REFERENCES}
    references["mandate"] = method_of(charge).id_of("mandate")
    references["refunds"] = charge.object("refunds").ids_of("data")
    references["subscription"] = expanded(charge, "invoice").id_of("subscription")
    return {f"stripe.{name}": value for name, value in references.items()}


def details_of(charge: Members) -> dict[str, Any]:
    """Return the details of the payment method, and other facts about the charge."""
    is_card = charge.object("payment_method_details").get("type", str) in CARDS
    details = card_details(charge) if is_card else method_of(charge).values
    outcome = charge.object("outcome").values
    dispute = expanded(charge, "dispute").values
    facts = {
        **{name: charge.values.get(source) for name, source in FACTS.items()},
        **{name: outcome.get(source) for name, source in OUTCOME.items()},
        "disputed": charge.get("disputed", bool) or None,
        "disputeReason": dispute.get("reason"),
        "disputeStatus": dispute.get("status"),
    }
    return present({**details, **facts, **amounts_of(charge)})


def card_details(charge: Members) -> dict[str, Any]:
    card = method_of(charge)
    return {
        "cardCountryCode": card.get("country", str),
        "cardHolder": card.get("cardholder_name", str) or charge.object("billing_details").get("name", str),
        "cardLabel": card.get("brand", str),
        "cardNumber": card.masked_number("last4"),
    }


def amounts_of(charge: Members) -> dict[str, Any]:
    """Return amounts for the details. A net amount with three decimals is one of them: a record has two."""
    balance = expanded(charge, "balance_transaction")
    net = net_of(charge)
    return {
        "amountCaptured": money(amount_of(charge, "amount_captured")),
        "amountRefunded": money(amount_of(charge, "amount_refunded")),
        "amountChargedBack": money(charged_back(charge)),
        "settlementAmount": money(amount_of(balance, "amount")),
        "fee": money(amount_of(balance, "fee")),
        "amountNet": None if net is None or net.has_two_decimals else net.money,
        "availableAt": time_of(balance, "available_on"),
    }


if __name__ == "__main__":
    PAGES.convert(convert, usage=__doc__)
