"""JSON Schemas as other programs need them, from those that msgspec makes of a declaration."""

import re
from typing import Any


def portable(value: Any) -> Any:
    r"""Return a schema, or JSON data that contains schemas, without what some programs cannot read.

    Patterns have the form of ECMA-262, which JSON Schema uses: `^` and `$` for Python's `\A` and `\Z`. An enumeration
    of texts has the type `string`.
    """
    if isinstance(value, list):
        return [portable(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    schema = {key: portable(inner) for key, inner in value.items()}
    if isinstance(pattern := schema.get("pattern"), str):
        schema["pattern"] = re.sub(r"\\Z$", "$", re.sub(r"^\\A", "^", pattern))
    if isinstance(schema.get("enum"), list) and "type" not in schema:
        schema = {"type": "string", **schema}
    return schema
