"""The JSON Schema of a record as an import reads it.

It expresses the form of the members. Rules that `validation` adds, for example for card numbers, are not part of it.
"""

from typing import Any

import msgspec

from payments.ingest.input_types import INPUT_TYPES, input_struct
from payments.json_schemas import portable
from payments.record import Details, DetailsDocument, Record

DIALECT = "https://json-schema.org/draft/2020-12/schema"

DESCRIPTION = (
    "A payment as manage.py import_payments reads it. Some rules, for example for card numbers, are not expressed."
)


def payment_schema() -> dict[str, Any]:
    """Return the schema as JSON data."""
    types = {**INPUT_TYPES, DetailsDocument: input_struct(Details)}
    schema = portable(msgspec.json.schema(input_struct(Record, types=types, forbid_unknown_fields=True)))
    return {"$schema": DIALECT, "title": "Payment", "description": DESCRIPTION, **schema}
