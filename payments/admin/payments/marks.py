"""The marks in the rows of a search: the words, the amount and the card that match, and the columns that have them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from payments.admin.payments.display import PaymentDisplay
from payments.admin.payments.search_box import Search
from payments.admin.preferences import ListColumn
from payments.listing.search_terms import AMOUNT, BEGINNING, CARD, WORD, folded, split_words

# The columns of the values that parameters select.
COLUMNS = {"status": ListColumn.STATUS, "method": ListColumn.METHOD, "customerId": ListColumn.CUSTOMER}


@dataclass(frozen=True)
class Marks:
    """The terms and the columns that a search matches."""

    terms: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ()
    columns: frozenset[ListColumn] = frozenset()

    do_not_call_in_templates = True

    @classmethod
    def of(cls, search: Search) -> Marks:
        terms = {term for group in search.groups for term in group.split(" ")}
        for name, value in search.parameters.items():
            if name.startswith("metadata["):
                terms |= {f"{WORD}{word}" for word in split_words(folded(value))}
        beginnings = tuple(term.removesuffix(BEGINNING) for term in terms if term.endswith(BEGINNING))
        columns = {column for name, column in COLUMNS.items() if name in search.parameters}
        if any(name.startswith("metadata[") for name in search.parameters):
            columns.add(ListColumn.METADATA)
        return cls(frozenset(terms), beginnings, frozenset(columns))

    def __call__(self, text: Any) -> bool:
        """Return whether a word of the text is marked."""
        words = [f"{WORD}{word}" for word in split_words(folded(str(text)))] if self.terms else ()
        return any(word in self.terms or word.startswith(self.beginnings) for word in words)

    @property
    def amounts(self) -> set[str]:
        return {term.removeprefix(AMOUNT) for term in self.terms if term.startswith(AMOUNT)}

    @property
    def of_cards(self) -> Marks:
        """Return the marks in the text of a card, whose end is a word."""
        ends = {f"{WORD}{term.removeprefix(CARD)}" for term in self.terms if term.startswith(CARD)}
        return replace(self, terms=self.terms | ends)

    def with_matched_columns(
        self, columns: Collection[ListColumn], payments: Sequence[PaymentDisplay]
    ) -> list[ListColumn]:
        """Return the columns, and those that show why payments match."""
        shown = {*columns, *self.columns}
        for payment in payments if self.terms else ():
            matches = {
                ListColumn.METHOD: self.of_cards(payment.card),
                ListColumn.CUSTOMER: self(payment.name),
                ListColumn.DESCRIPTION: self(payment.record.description),
                ListColumn.METADATA: any(self(value) for _, value in payment.metadata),
            }
            shown |= {column for column, is_match in matches.items() if is_match}
        return [column for column in ListColumn if column in shown]
