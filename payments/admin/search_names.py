"""Named values in the text of the search box, such as `status:failed`. Any other name is a metadata key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from payments.admin.search_meaning import InvalidSearch, Search
from payments.models import Status
from payments.search_terms import CARD


def add_named(search: Search, name: str, value: str) -> None:
    """Add the value to the search.

    :raises InvalidSearch: the value does not fit the name
    """
    if name.lower() in NAMED:
        NAMED[name.lower()](search, value)
    else:
        add_pair(search, name, value)


def add_pair(search: Search, key: str, value: str) -> None:
    search.add_parameter(f"metadata[{key}]", value)
    search.add_meaning(f"the metadata {key}={value}")


def add_metadata(search: Search, text: str) -> None:
    key, separator, value = text.partition("=")
    if not (key and separator and value):
        raise InvalidSearch("Enter a key and a value after metadata, such as metadata:order=84820.")
    add_pair(search, key, value)


def add_status(search: Search, text: str) -> None:
    if text.lower() not in Status.values:
        raise InvalidSearch(f"Enter one of these after status: {', '.join(Status.values)}.")
    search.add_parameter("status", text.lower())
    search.add_meaning(f"the status {text.lower()}")


def add_method(search: Search, text: str) -> None:
    search.add_parameter("method", text)
    search.add_meaning(f"the method {text}")


def add_card(search: Search, text: str) -> None:
    if not re.fullmatch(r"[0-9]{4}", text):
        raise InvalidSearch("Enter the last four digits of the card, such as card:4242.")
    search.groups.append(f"{CARD}{text}")
    search.add_meaning(f"a card number that ends in {text}")


NAMED: Mapping[str, Callable[[Search, str], None]] = {
    "card": add_card,
    "last4": add_card,
    "metadata": add_metadata,
    "method": add_method,
    "status": add_status,
}
