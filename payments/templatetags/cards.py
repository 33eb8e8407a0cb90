"""A template filter for lists whose rows are cards on a narrow screen."""

from collections.abc import Iterable, Iterator
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

register = template.Library()

TAG_CHARACTERS = len("<td")


@register.filter
def labelled(cells: Iterable[SafeString], headers: list[dict[str, Any]]) -> Iterator[SafeString]:
    """Yield the cells of a row in a list of Django's admin. Each has the title of its column as `data-label`."""
    for cell, header in zip(cells, headers, strict=True):
        tag, rest = mark_safe(cell[:TAG_CHARACTERS]), mark_safe(cell[TAG_CHARACTERS:])  # noqa: S308  Django's own HTML
        # The title of the check boxes is a check box itself.
        title = "Select" if "action-checkbox" in header.get("class_attrib", "") else capfirst(header["text"])
        yield format_html('{} data-label="{}"{}', tag, title, rest)
