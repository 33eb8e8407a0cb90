"""Reads the records of another system. A member of an unknown form is an error that names it, but not its value."""

import json
import re
from collections.abc import Mapping
from itertools import count
from typing import Any

FORMS = {str: "a text", int: "a whole number", bool: "true or false", dict: "an object", list: "a list"}


class InvalidMember(ValueError):
    """A member of a record has a form that the program does not know."""


class Members:
    """The members of an object, whose names in errors begin with `path`. A member that is null is absent."""

    def __init__(self, value: Any, path: str = "") -> None:
        if not isinstance(value, dict):
            raise InvalidMember(f"{path.removesuffix('.') or 'the record'}: must be an object")
        self.values = value
        self.path = path

    def get(self, name: str, form: type) -> Any:
        """Return the member; None if it is absent."""
        value = self.values.get(name)
        if value is not None and (not isinstance(value, form) or (isinstance(value, bool) and form is not bool)):
            raise self.error(name, FORMS[form])
        return value

    def require(self, name: str, form: type) -> Any:
        if (value := self.get(name, form)) is None:
            raise InvalidMember(f"{self.path}{name}: is missing")
        return value

    def error(self, name: str, rule: str) -> InvalidMember:
        return InvalidMember(f"{self.path}{name}: must be {rule}")

    def object(self, name: str) -> "Members":
        """Return the members of an object; none if it is absent. Some programs write an empty object as `[]`."""
        value = self.values.get(name)
        return Members({} if value is None or value == [] else value, f"{self.path}{name}.")

    def id_of(self, name: str) -> str | None:
        """Return the ID of another record: a text, or an object with an `id`; None if it is absent."""
        value = self.values.get(name)
        if isinstance(value, dict):
            value = Members(value, f"{self.path}{name}.").require("id", str)
        if value is not None and not isinstance(value, str):
            raise self.error(name, "an ID, or an object with an id")
        return value or None

    def ids_of(self, name: str) -> str | None:
        """Return the IDs of a list of other records, separated by spaces; None if it is absent or empty."""
        records = self.get(name, list) or []
        items = Members({f"{name}[{index}]": record for index, record in enumerate(records)}, self.path)
        return " ".join(filter(None, map(items.id_of, items.values))) or None

    def masked_number(self, name: str) -> str | None:
        """Return a card number with all digits masked except the last four; None if it is absent."""
        number = self.get(name, str)
        if number and not re.search(r"[0-9]{4}\Z", number):
            raise self.error(name, "a text that ends in four digits")
        return f"XXXX XXXX XXXX {number[-4:]}" if number else None


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that are not null."""
    return {name: value for name, value in values.items() if value is not None}


def texts(metadata: Any) -> dict[str, str]:
    """Return metadata of any form as an object of texts, without members that are null."""
    members = metadata if isinstance(metadata, dict) else {} if metadata == [] else {"metadata": metadata}
    return {name: value if isinstance(value, str) else as_json(value) for name, value in present(members).items()}


def as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidMember("metadata: has a number that is too large") from None


def add_references(metadata: Mapping[str, str], references: Mapping[str, str | None]) -> dict[str, str]:
    """Return the metadata and the references. If the metadata has such a name, the reference's name ends in `_`."""
    result = dict(metadata)
    for name, value in present(references).items():
        names = (f"{name}{'_' * number}" for number in count())
        result[next(free for free in names if result.get(free, value) == value)] = value
    return result
