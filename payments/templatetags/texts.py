"""Template filters for numbers, times, cells of lists, and for texts and URLs that a merchant or a customer has chosen.

Control characters for the writing direction can make a text look different from its content, and reverse the text
beside it. The page shows each of them as a mark with its code. The mark is not part of the text, so a copy of the text
equals the original.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from django import template
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator, capfirst

from payments.listing.search_terms import BETWEEN_WORDS
from payments.models import SequenceType, Status
from payments.models.choices import method_label
from payments.models.days import local_time

register = template.Library()
register.filter(method_label)

# Embeddings and overrides, isolates, and marks.
DIRECTION_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")

JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

SHORT_CHARACTERS_MAX, START_CHARACTERS = 500, 150

# The words of a text, and what is between them.
PIECES = re.compile(f"({BETWEEN_WORDS})")

EXCERPT_CHARACTERS = 80

TAG_CHARACTERS = len("<td")


@register.filter
def isolated(text: object) -> SafeString:
    """Return a text as an element whose writing direction does not affect the rest of the page."""
    return format_html("<bdi>{}</bdi>", marked(str(text)))


@register.filter
def highlighted(text: str, is_marked: Callable[[str], bool]) -> SafeString:
    """Return an isolated excerpt of a text, whose marked words are elements. It has the first of them."""
    pieces = PIECES.split(text)
    first = next((index for index, piece in enumerate(pieces) if is_marked(piece)), 0)
    if first and len("".join(pieces[: first + 1])) > EXCERPT_CHARACTERS:
        pieces = ["\u2026", *pieces[first:]]
    pieces = PIECES.split(Truncator("".join(pieces)).chars(EXCERPT_CHARACTERS))
    elements = ("<mark>{}</mark>" if is_marked(piece) else "{}" for piece in pieces)
    html = (format_html(element, marked(piece)) for element, piece in zip(elements, pieces, strict=True))
    return format_html("<bdi>{}</bdi>", mark_safe("".join(html)))  # noqa: S308  all pieces are escaped


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
        return shortened(url)
    return shortened(url, format_html('<a href="{}" rel="noopener noreferrer">{}</a>', url, isolated(url)))


@register.filter
def shortened(text: str, element: SafeString | None = None) -> SafeString:
    """Return an isolated text, or its element. Of more than about ten lines, show the start until the user opens it."""
    content = element or isolated(text)
    if len(text) <= SHORT_CHARACTERS_MAX:
        return content
    start = isolated(text[:START_CHARACTERS])
    summary = format_html('<span>{}… <b>Show all</b></span><b class="less">Show less</b>', start)
    return format_html('<details class="long"><summary>{}</summary>{}</details>', summary, content)


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
def local_date(moment: datetime, zone: tzinfo) -> str:
    return f"{local_time(moment, zone):%-d %b %Y}"


@register.filter
def short_time(moment: datetime, zone: tzinfo) -> SafeString:
    """Return a time as an element: `Tue 24 Nov 14:05`, with the year if it is another one. The tooltip has seconds."""
    here, now = local_time(moment, zone), local_time(timezone.now(), zone)
    text = f"{here:%a %-d %b} {'' if here.year == now.year else f'{here.year} '}{here:%H:%M}"
    title = f"{here.isoformat(' ', 'seconds')}, {local_time(moment, UTC).isoformat(' ', 'seconds')} UTC"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.astimezone(UTC).isoformat(), title, text)


@register.filter
def status_label(status: str) -> str:
    return Status(status).label


@register.filter
def sequence_label(sequence_type: str) -> str:
    return SequenceType(sequence_type).label


@register.filter
def percent(number: float | None) -> str:
    return "-" if number is None else f"{number:.1f} %"


@register.filter
def labelled(cells: Iterable[SafeString], headers: list[dict[str, Any]]) -> Iterator[SafeString]:
    """Yield the cells of a row in a list of Django's admin. Each has the title of its column as `data-label`."""
    for cell, header in zip(cells, headers, strict=True):
        tag, rest = mark_safe(cell[:TAG_CHARACTERS]), mark_safe(cell[TAG_CHARACTERS:])  # noqa: S308  Django's own HTML
        # The title of the check boxes is a check box itself.
        title = "Select" if "action-checkbox" in header.get("class_attrib", "") else capfirst(header["text"])
        yield format_html('{} data-label="{}"{}', tag, title, rest)
