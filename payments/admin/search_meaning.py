"""The meaning of a text of the search box: search terms, and parameters of the API's list.

A part of the text can be a named value, such as `status:failed`. Any other name is a metadata key.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date

from payments.listing.search_terms import CARD, WORD, words
from payments.models import Status

NOUNS = {
    "currency": "currency",
    "customerId": "customer",
    "createdAt[gte]": "date",
    "createdAt[lt]": "date",
    "status": "status",
    "method": "method",
    **dict.fromkeys(("amount[gt]", "amount[gte]"), "lower bound of the amount"),
    **dict.fromkeys(("amount[lt]", "amount[lte]"), "upper bound of the amount"),
}


class InvalidSearch(ValueError):
    """The text cannot be searched for. The message says why."""


@dataclass
class Search:
    """The meaning of a text: groups of terms, which must all match, and parameters of the API's list."""

    today: date
    groups: list[str] = field(default_factory=list)  # see `search_terms.HasSearchTerms`
    parameters: dict[str, str] = field(default_factory=dict)
    meanings: list[str] = field(default_factory=list)  # of the parts of the text, for the page
    payment_id: str = ""
    has_alternative: bool = False  # a part of the text is not searched for as words

    @property
    def meaning(self) -> str:
        return ", and ".join(self.meanings)

    def add_words(self, text: str) -> None:
        new_words = words(text)
        self.groups += [f"{WORD}{word}" for word in new_words]
        if new_words:
            self.meanings.append(f"the {'words' if len(new_words) > 1 else 'word'} {' '.join(new_words)}")

    def add_meaning(self, meaning: str) -> None:
        """Add the meaning of a part that is not searched for as words."""
        self.meanings.append(meaning)
        self.has_alternative = True

    def add_parameter(self, name: str, value: str) -> None:
        if self.parameters.setdefault(name, value) != value:
            raise InvalidSearch(f"Enter only one {NOUNS.get(name, 'value of each metadata key')}.")


def add_named(search: Search, name: str, value: str) -> None:
    """Add the value to the search; raise `InvalidSearch` if it does not fit the name."""
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
