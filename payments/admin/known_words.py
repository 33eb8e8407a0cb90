"""The methods and currencies that the payment list offers as choices: those of the newest payments."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from payments.database.limits import optional_statements
from payments.models import Access, Payment
from payments.ordering import NEWEST_FIRST

PAYMENTS = 1000
WORDS_MAX = 12  # of each kind


class KnownWords(NamedTuple):
    """The most frequent words of the newest payments, in alphabetical order."""

    methods: list[str]
    currencies: list[str]


def known_words(access: Access) -> KnownWords:
    """Return the methods and currencies of the newest payments; none if the database is too slow.

    Cost: one query for 1,000 payments of the list.
    """
    newest = Payment.objects.visible_to(access).order_by(*NEWEST_FIRST)
    pairs = Counter[tuple[str, str]]()
    with optional_statements():
        pairs.update(newest.values_list("method", "amount_currency")[:PAYMENTS])
    methods, currencies = Counter[str](), Counter[str]()
    for (method, currency), number in pairs.items():
        methods[method] += number
        currencies[currency] += number
    return KnownWords(most_frequent(methods), most_frequent(currencies))


def most_frequent(words: Counter[str]) -> list[str]:
    return sorted(word for word, _ in words.most_common(WORDS_MAX) if word)
