"""Convert pages of Mollie's "List payments" to JSON Lines for import_payments.

    python3 examples/mollie_payments.py ORGANIZATION PAGE.json... >payments.jsonl

The ID tr_7UhSN1zuXS becomes pt_tr_7UhSN1zuXS. REFERENCES become metadata, such as mollie.settlementId, and FACTS become
details. Other members that a payment does not have are left out. The page - is read from stdin.
"""

import re
from decimal import Decimal
from typing import Any

from amounts import Amount, money
from members import Members, add_references, present, texts
from pages import Pages

PAGES = Pages('Mollie\'s "List payments"', lambda page: page["_embedded"]["payments"], "resource", "payment")
SAME = ("method", "redirectUrl", "webhookUrl", "expiresAt", "paidAt")
REFERENCES = ("settlementId", "mandateId", "subscriptionId", "orderId", "profileId")
EMBEDDED = ("refunds", "chargebacks", "captures")  # references that a page has with `embed`
FACTS = (
    *("statusReason", "authorizedAt", "captureBefore", "canceledAt", "expiredAt", "failedAt"),
    *("amountCaptured", "amountRefunded", "amountChargedBack", "settlementAmount", "applicationFee"),
)


def convert(payment: dict[str, Any], organization: str) -> dict[str, Any]:
    """Return the payment as a record of import_payments.

    :raises InvalidMember: a member has an unknown form
    """
    members = Members(payment)
    amount = read_amount(Members(members.require("amount", dict), "amount."))
    status = members.require("status", str)
    customer = members.id_of("customerId")
    return {
        "id": f"pt_{members.require('id', str)}",
        **{name: members.require(name, str) for name in ("mode", "createdAt")},
        **{name: members.get(name, str) for name in SAME},
        "amount": amount.money,
        "amountRemaining": money(remaining(members, amount)),
        "description": members.get("description", str) or "",
        "status": "succeeded" if status == "paid" else status,
        "organizationId": organization,
        "sequenceType": members.get("sequenceType", str) or "oneoff",
        "metadata": add_references(texts(payment.get("metadata")), references_of(members)),
        "details": details_of(members) or None,
        "customerId": f"ct_{customer}" if customer else None,
    }


def amount_of(payment: Members, name: str) -> Amount | None:
    return None if payment.values.get(name) is None else read_amount(payment.object(name))


def read_amount(amount: Members) -> Amount:
    value = amount.require("value", str)
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        raise amount.error("value", 'a decimal, as text, such as "10.00"')
    return Amount(Decimal(value), amount.require("currency", str))


def remaining(payment: Members, amount: Amount) -> Amount | None:
    """Return the remaining amount of a payment: without refunds and chargebacks.

    Mollie's own `amountRemaining` may be larger: it is the refundable amount, for example with the costs of a return.
    """
    refundable = amount_of(payment, "amountRemaining")
    if payment.values["status"] != "paid":
        return refundable
    names = ("amountRefunded", "amountChargedBack")
    given_back = {name: value for name in names if (value := amount_of(payment, name))}
    for name, value in {**given_back, "amountRemaining": refundable or amount}.items():
        if value.currency != amount.currency:
            raise payment.error(f"{name}.currency", "the currency of the amount")
    if refundable is None and not given_back:
        return None
    left = amount.value - sum(value.value for value in given_back.values())
    return Amount(min(left, refundable.value) if refundable else left, amount.currency)


def references_of(payment: Members) -> dict[str, str | None]:
    """Return the IDs of other records, by their names in the metadata."""
    embedded = payment.object("_embedded")
    references = {name: payment.id_of(name) for name in REFERENCES}
    lists = {name: embedded.ids_of(name) for name in EMBEDDED}
    return {f"mollie.{name}": value for name, value in (references | lists).items()}


def details_of(payment: Members) -> dict[str, Any]:
    """Return Mollie's details, and other facts about the payment. Mollie gives the last four digits of a card."""
    details = payment.object("details")
    number = {"cardNumber": details.masked_number("cardNumber")}
    facts = {name: payment.values.get(name) for name in FACTS}
    return present({**details.values, **number, **facts})


if __name__ == "__main__":
    PAGES.convert(convert, usage=__doc__)
