"""The index of the documentation's search. The browser searches it, so a search needs no request."""

from collections.abc import Iterator
from typing import TypedDict

from django.urls import reverse

from payments.docs.pages import PAGES, render_page


class Entry(TypedDict):
    """A section of a page."""

    url: str
    page: str
    title: str
    text: str


def search_entries() -> Iterator[Entry]:
    """Yield all sections, in the order of the pages."""
    for page in PAGES:
        document = render_page(page)
        for anchor, title, text in document.texts:
            yield Entry(url=f"{reverse(page.url_name)}#{anchor}", page=document.title, title=title, text=text)
