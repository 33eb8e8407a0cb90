"""Template filters for numbers, times, cells of lists, and for texts and URLs that a merchant or a customer has chosen.

Control characters for the writing direction can make a text look different from its content, and reverse the text
beside it. The page shows each of them as a mark with its code. The mark is not part of the text, so a copy of the text
equals the original.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

from payments.models.days import local_time

register = template.Library()

# Embeddings and overrides, isolates, and marks.
DIRECTION_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")

JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

TAG_CHARACTERS = len("<td")


@register.filter
def isolated(text: object) -> SafeString:
    """Return a text as an element whose writing direction does not affect the rest of the page."""
    return format_html("<bdi>{}</bdi>", marked(str(text)))


@register.filter
def isolated_json(document: str) -> SafeString:
    """Return a JSON document with each of its strings isolated. The text of the elements is the document."""
    parts = []
    end = 0
    for match in JSON_STRING.finditer(document):
        parts += [escape(document[end : match.start()]), '"', isolated(match[0][1:-1]), '"']
        end = match.end()
    return mark_safe("".join([*parts, escape(document[end:])]))  # noqa: S308  all parts are escaped


@register.filter
def linked(url: str) -> SafeString:
    """Return a link for an http or https URL. Other URLs, which may start an app, stay text."""
    if urlsplit(url).scheme not in {"http", "https"}:
        return isolated(url)
    return format_html('<a href="{}" rel="noopener noreferrer">{}</a>', url, isolated(url))


def marked(text: str) -> SafeString:
    """Return an escaped text with its control characters in elements. The style sheet shows the code of each."""
    return mark_safe(DIRECTION_CONTROLS.sub(lambda match: mark(match[0]), escape(text)))  # noqa: S308  it is escaped


def mark(character: str) -> str:
    return format_html(
        '<bdi class="control" data-code="U+{}" title="{}">{}</bdi>',
        f"{ord(character):04X}",
        unicodedata.name(character).lower(),
        character,
    )


@register.filter
def grouped(number: int | str) -> str:
    """Return a number with thousands separators: `1,234,567.80` for `1234567.80`."""
    return f"{Decimal(number):,}"


@register.filter
def money(hundredths: int) -> str:
    """Return an amount with two decimal places and thousands separators: `1,234.50` for 123450."""
    return f"{Decimal(hundredths).scaleb(-2):,.2f}"


@register.filter
def local(moment: datetime, zone: tzinfo) -> SafeString:
    """Return a time as an element: the time in the zone, with UTC as its tooltip."""
    here, utc = (local_time(moment, place).isoformat(" ", "seconds") for place in (zone, UTC))
    return format_html('<time datetime="{}" title="{} UTC">{}</time>', moment.astimezone(UTC).isoformat(), utc, here)


@register.filter
def percent(number: float | None) -> str:
    """Return a percentage with one decimal place, or a dash if there is none."""
    return "-" if number is None else f"{number:.1f} %"


@register.filter
def labelled(cells: Iterable[SafeString], headers: list[dict[str, Any]]) -> Iterator[SafeString]:
    """Yield the cells of a row in a list of Django's admin. Each has the title of its column as `data-label`."""
    for cell, header in zip(cells, headers, strict=True):
        tag, rest = mark_safe(cell[:TAG_CHARACTERS]), mark_safe(cell[TAG_CHARACTERS:])  # noqa: S308  Django's own HTML
        # The title of the check boxes is a check box itself.
        title = "Select" if "action-checkbox" in header.get("class_attrib", "") else capfirst(header["text"])
        yield format_html('{} data-label="{}"{}', tag, title, rest)
