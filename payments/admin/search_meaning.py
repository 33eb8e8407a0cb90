"""The meaning of a text of the search box: search terms, and parameters of the API's list."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from payments.search_terms import WORD, words

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
        """Return the meanings of all parts, for the page."""
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
