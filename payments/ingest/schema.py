"""The declaration of a record as an import reads it, derived from `Record`, and its JSON Schema.

An optional member may be null, times and card numbers may have other forms than in the API's responses, and `resource`
and `_links` may have any value.
"""

from collections.abc import Mapping
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, field
from msgspec.structs import fields

from payments.record import (
    CardNumber,
    Details,
    DetailsDocument,
    Metadata,
    Record,
    Time,
    instant_pattern,
    portable,
    without_unset,
)
from payments.rows import NOT_STORED

# The fields that are ignored, because the service writes them itself: their names in Python and in JSON.
IGNORED = {declared.name: declared.encode_name for declared in fields(Record) if declared.name in NOT_STORED}


def input_time(pattern: str) -> Any:
    description = (
        "a time (ISO 8601) with at most three fractional digits, such as 2018-03-20T13:28:37.123, "
        "in UTC or with Z or an offset"
    )
    return Annotated[str, Meta(pattern=rf"\A{pattern}\Z", description=description)]


SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_DESCRIPTION = (
    "A payment as manage.py import_payments reads it. Some rules, for example for card numbers, are not expressed."
)

INPUT_TYPES: Mapping[Any, Any] = {Time: input_time(instant_pattern()), Metadata: dict[str, str], CardNumber: str}


def input_struct(struct: type[Struct], *, types: Mapping[Any, Any] = INPUT_TYPES, **options: Any) -> type[Struct]:
    """Return the declaration of the input of an object. `types` replaces types of its members."""
    hints = get_type_hints(struct, include_extras=True)
    members: list[tuple[str, Any, Any]] = []
    for member in fields(struct):
        type_ = without_unset(hints[member.name])
        type_ = types.get(type_, type_)
        if member.name in IGNORED:
            members.append((member.name, Any, field(default=UNSET, name=member.encode_name)))
        elif member.required:
            members.append((member.name, type_, field(name=member.encode_name)))
        else:
            # msgspec decodes null as `Raw` too. In a union with None, it would refuse all other values.
            null = UnsetType if type_ == DetailsDocument else UnsetType | None
            members.append((member.name, type_ | null, field(default=UNSET, name=member.encode_name)))
    return defstruct(struct.__name__, members, kw_only=True, **options)


InputRecord = input_struct(Record, forbid_unknown_fields=True)


def payment_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record as an import reads it: the form of its members, without further rules."""
    time = input_time(instant_pattern(fraction="[0-9]{1,3}0*"))  # the import has a reason for other digits
    types = {**INPUT_TYPES, Time: time, DetailsDocument: input_struct(Details)}
    schema = portable(msgspec.json.schema(input_struct(Record, types=types, forbid_unknown_fields=True)))
    return {"$schema": SCHEMA_DIALECT, "title": "Payment", "description": SCHEMA_DESCRIPTION, **schema}
