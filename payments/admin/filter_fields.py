"""Form fields of the payment list whose values repeat in the query string: words, and pairs of a key and a value."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

# Each word may be entered with any of these between them.
SEPARATORS = re.compile(r"[\s,]+")

PAIR_RULE = "Enter a key and a value, such as order=84820."


class WordsInput(forms.CheckboxSelectMultiple):
    """Checkboxes for the known words, and a text input for others. All of them have the same name.

    The value is a list of words: `?method=ideal&method=paypal, eps` has three. The list's filters validate each word.
    """

    template_name = "admin/words_input.html"

    def __init__(self, others_label: str) -> None:
        super().__init__()
        self.others_label = others_label

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return list(dict.fromkeys(split_words(data.getlist(name))))

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        known = [str(word) for word, _ in self.choices]
        others = ", ".join(word for word in value or () if word not in known)
        return {**super().get_context(name, value, attrs), "others": others, "others_label": self.others_label}


class PairsInput(forms.TextInput):
    """A text input for each pair, and an empty one for another."""

    template_name = "admin/pairs_input.html"

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [text for text in data.getlist(name) if text.strip()]

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        return {**super().get_context(name, None, attrs), "pairs": [*(value or ()), ""]}


class PairsField(forms.Field):
    """Pairs such as `order=84820`. The clean value is a dictionary."""

    widget = PairsInput

    def clean(self, value: Sequence[str]) -> dict[str, str]:
        pairs = [split_pair(text) for text in value]
        if len(dict(pairs)) < len(pairs):
            raise ValidationError("Enter each key once.")
        return dict(pairs)


def split_words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from filter(None, SEPARATORS.split(text))


def split_pair(text: str) -> tuple[str, str]:
    """Return the key and the value. The value may contain the sign `=`, as in the browsable API."""
    key, separator, value = text.partition("=")
    if not (separator and key.strip() and value.strip()):
        raise ValidationError(PAIR_RULE)
    return key.strip(), value.strip()
