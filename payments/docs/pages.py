"""Which documents are pages, and where links between them lead."""

from __future__ import annotations

from functools import cache, partial
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from payments.docs.markdown import Document


class Page(NamedTuple):
    """A document, below `docs/`, and its place on the site, below `/docs/`."""

    file: str
    place: str
    url_name: str


PAGES = (
    Page("api/index.md", "", "documentation"),
    Page("api/reference.md", "reference/", "documentation-reference"),
    Page("synchronising.md", "synchronising/", "documentation-synchronising"),
)
PLACES = {page.file: page.place for page in PAGES}


@cache
def rendered(page: Page) -> Document:
    """Return the page's document. What writes it is loaded with the first: most workers are never asked for one."""
    text = (settings.BASE_DIR / "docs" / page.file).read_text()
    document: Document = import_string("payments.docs.markdown.render")(text, address_of=partial(address, page=page))
    return document


def address(link: str, *, page: Page) -> str:
    """Return where a link of that page's document leads on the site: for another page, from here, wherever that is.

    :raises KeyError: where it names a file that is no page
    """
    file, separator, anchor = link.partition("#")
    if not file or "://" in file:
        return link
    place = PLACES[normpath(join(dirname(page.file), file))]
    return f"{'../' * page.place.count('/')}{place}{separator}{anchor}" or "./"
