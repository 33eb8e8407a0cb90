"""Read the list by each query, and import payments, with a client of openapi-python-client. See test_generators.py."""

import json
import re
import sys
from enum import Enum
from typing import Any, get_args, get_type_hints
from urllib.parse import parse_qs, urlsplit

from generated import AuthenticatedClient
from generated.api.payments import import_payments, list_payments
from generated.models import PaymentInput

base_url, key, queries, import_key, records = sys.argv[1:]

client = AuthenticatedClient(base_url=base_url, token=key, raise_on_unexpected_status=True)
hints = get_type_hints(list_payments.sync)


def argument(name: str) -> str:
    """Return the name of an argument: `createdAt[gte]` is `created_atgte`."""
    return re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", re.sub(r"\W", "", name))


def typed(name: str, value: Any) -> Any:
    """Return the value with the types that the generator has made for enumerations."""
    if isinstance(value, list):
        return [typed(name, item) for item in value]
    types = [inner for hint in get_args(hints[name]) for inner in (hint, *get_args(hint))]
    enums = [type_ for type_ in types if isinstance(type_, type) and issubclass(type_, Enum)]
    return enums[0](value) if enums else value


ids: dict[str, list[str]] = {}
details: dict[str, Any] = {}
for name, query in json.loads(queries).items():
    arguments = {argument(parameter): typed(argument(parameter), value) for parameter, value in query.items()}
    ids[name] = []
    while True:
        page = list_payments.sync(client=client, limit=100, **arguments)
        for payment in page.field_embedded.payments:
            ids[name].append(payment.id)
            details[payment.id] = payment.details.to_dict() if payment.details else None
        if not page.field_links.next_:
            break
        [arguments["from_"]] = parse_qs(urlsplit(page.field_links.next_.href).query)["from"]
importer = AuthenticatedClient(base_url=base_url, token=import_key, raise_on_unexpected_status=True)
result = import_payments.sync(client=importer, body=[PaymentInput.from_dict(record) for record in json.loads(records)])
print(json.dumps({"ids": ids, "details": details, "counts": [result.read, result.written, result.unchanged]}))
