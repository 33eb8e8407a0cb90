"""Read the list by each query, and import payments, with a client of openapi-generator. See test_generators.py."""

import json
import re
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

from generated import ApiClient, Configuration, PaymentInput, PaymentsApi

base_url, key, queries, import_key, records = sys.argv[1:]

api = PaymentsApi(ApiClient(Configuration(host=base_url, access_token=key)))


def argument(name: str) -> str:
    """Return the name of an argument: `createdAt[gte]` is `created_at_gte`."""
    words = re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", name)
    return words.replace("[", "_").removesuffix("]")


ids: dict[str, list[str]] = {}
details: dict[str, Any] = {}
for name, query in json.loads(queries).items():
    arguments = {argument(parameter): value for parameter, value in query.items()} | {"limit": 100}
    ids[name] = []
    while True:
        page = api.list_payments(**arguments)
        for payment in page.embedded.payments:
            ids[name].append(payment.id)
            details[payment.id] = payment.details.to_dict() if payment.details else None
        if page.links.next is None:
            break
        [arguments["var_from"]] = parse_qs(urlsplit(page.links.next.href).query)["from"]
importer = PaymentsApi(ApiClient(Configuration(host=base_url, access_token=import_key)))
result = importer.import_payments([PaymentInput.from_dict(record) for record in json.loads(records)])
print(json.dumps({"ids": ids, "details": details, "counts": [result.read, result.written, result.unchanged]}))
