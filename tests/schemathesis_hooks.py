"""Bodies of imports that schemathesis sends. See tests/api/test_inputs.py."""

from typing import Any

import schemathesis

ORGANIZATION = "9003"

schemathesis.serializer.alias(["application/x-ndjson", "application/jsonl"], "text/plain")


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    """Give records the organization of the key, so that some can be written."""
    records = [record for record in body if isinstance(record, dict)] if isinstance(body, list) else []
    for record in records:
        record["organizationId"] = ORGANIZATION
    return body
