"""Use every filter, and walk each list, with a client that openapi-python-client generated as the package `generated`.

The arguments are the directory of the package, the address, the API key, and the value of each filter as JSON. The
output is the IDs of each filter as JSON.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

directory, base_url, key, values = sys.argv[1:]
sys.path.insert(0, directory)

from generated import AuthenticatedClient  # noqa: E402  the package is in the directory
from generated.api.payments import get_payment, list_payments  # noqa: E402
from generated.models import (  # noqa: E402
    ListPaymentsCurrencyItem,
    ListPaymentsMetadata,
    ListPaymentsSequenceTypeItem,
    ListPaymentsSort,
    ListPaymentsStatusItem,
)

# The arguments that do not have the names of their parameters.
ARGUMENTS = {"customerId": "customer_id", "sequenceType": "sequence_type"} | {
    f"{field}[{bound}]": f"{argument}{bound}"
    for field, argument in (("createdAt", "created_at"), ("paidAt", "paid_at"), ("amount", "amount"))
    for bound in ("gte", "gt", "lte", "lt")
}

client = AuthenticatedClient(base_url=base_url, token=key, raise_on_unexpected_status=True)


# How to convert the values of filters whose types the generator has made.
CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "sort": ListPaymentsSort,
    "status": lambda words: list(map(ListPaymentsStatusItem, words)),
    "sequenceType": lambda words: list(map(ListPaymentsSequenceTypeItem, words)),
    "currency": lambda words: list(map(ListPaymentsCurrencyItem, words)),
    # The generator sends metadata pairs without the name of the parameter, so the keys contain it.
    "metadata": lambda pairs: ListPaymentsMetadata.from_dict({f"metadata[{key}]": pairs[key] for key in pairs}),
}


def arguments_of(name: str, value: Any) -> dict[str, Any]:
    """Return the arguments for a filter."""
    if name == "all":
        return {}
    argument = ARGUMENTS.get(name, name)
    currency = {"currency": [ListPaymentsCurrencyItem.EUR]} if name.startswith("amount") else {}
    return {argument: CONVERSIONS[name](value) if name in CONVERSIONS else value, **currency}


def walk(**arguments: Any) -> Iterator[str]:
    """Yield the IDs of a list, page by page."""
    page = list_payments.sync(client=client, limit=100, **arguments)
    while page:
        yield from (payment.id for payment in page.field_embedded.payments)
        if not page.field_links.next_:
            return
        [start] = parse_qs(urlsplit(page.field_links.next_.href).query)["from"]
        page = list_payments.sync(client=client, limit=100, from_=start, **arguments)


ids = {name: list(walk(**arguments_of(name, value))) for name, value in json.loads(values).items()}
payment = get_payment.sync(ids["all"][0], client=client)
assert payment.id == ids["all"][0]
print(json.dumps(ids))
