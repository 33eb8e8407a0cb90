"""The JSON Schema of a record as an import reads it.

It expresses the form of the members. Rules that `validation` adds, for example for card numbers, are not part of it.
"""

from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType, defstruct, field
from msgspec.structs import FieldInfo, fields

from payments.ingest.forms import IGNORED, INPUT_TYPES
from payments.json_schemas import portable
from payments.record import Details, DetailsDocument, Metadata, Record

DIALECT = "https://json-schema.org/draft/2020-12/schema"

DESCRIPTION = (
    "A payment as manage.py import_payments reads it. Some rules, for example for card numbers, are not expressed."
)


def payment_schema() -> dict[str, Any]:
    """Return the schema as JSON data."""
    schema = portable(msgspec.json.schema(input_struct("Payment", Record, forbid_unknown_fields=True)))
    return {"$schema": DIALECT, "title": "Payment", "description": DESCRIPTION, **schema}


def input_struct(name: str, struct: type[Struct], **options: Any) -> type[Struct]:
    """Return a declaration of the input of an object: optional members may be null, and times have more forms."""
    hints = get_type_hints(struct, include_extras=True)
    members = [input_member(declared, hints[declared.name]) for declared in fields(struct)]
    return defstruct(name, members, kw_only=True, **options)


def input_member(declared: FieldInfo, hint: Any) -> tuple[str, Any, Any]:
    """Return the name, the type and the options of a member."""
    if declared.name in IGNORED:
        return declared.name, Any, field(default=UNSET, name=declared.encode_name)
    if declared.required:
        return declared.name, input_type(hint), field(name=declared.encode_name)
    type_ = input_type(get_args(hint)[0])
    return declared.name, type_ | UnsetType | None, field(default=UNSET, name=declared.encode_name)


def input_type(type_: Any) -> Any:
    if type_ == DetailsDocument:
        return input_struct("Details", Details)
    return dict[str, str] if type_ == Metadata else INPUT_TYPES.get(type_, type_)
