"""The Markdown files that are pages, and the links between them."""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, NamedTuple

from django.urls import reverse
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from payments.docs.markdown import Document


# A wheel has the files in this package, a checkout in `docs/`.
PACKAGED = Path(__file__).resolve().with_name("documents")
DIRECTORY = PACKAGED if PACKAGED.is_dir() else PACKAGED.parents[2] / "docs"


# The folder in a link to another Markdown file. The URLs of all Markdown files are in one folder.
FOLDER = re.compile(r"(?<=\]\()[\w./]*/(?=[\w-]+\.md\b)")


class DocsPage(NamedTuple):
    """A Markdown file of `docs/`, and its URL path below `/docs/`."""

    file: str
    path: str
    url_name: str

    @property
    def url(self) -> str:
        return reverse(f"payments:{self.url_name}")

    @property
    def markdown_path(self) -> str:
        return Path(self.file).name

    @property
    def markdown_url(self) -> str:
        return reverse("payments:documentation") + self.markdown_path


PAGES = (
    DocsPage("api/index.md", "", "documentation"),
    DocsPage("api/samples.md", "samples/", "documentation-samples"),
    DocsPage("api/reference.md", "reference/", "documentation-reference"),
    DocsPage("synchronising.md", "synchronising/", "documentation-synchronising"),
    DocsPage("filling.md", "filling/", "documentation-filling"),
    DocsPage("importing.md", "importing/", "documentation-importing"),
    DocsPage("figures.md", "figures/", "documentation-figures"),
    DocsPage("api/changes.md", "changes/", "documentation-changes"),
    DocsPage("staff-guide.md", "staff-guide/", "documentation-staff-guide"),
)
PATHS = {page.file: page.path for page in PAGES}


@cache
def render_page(page: DocsPage) -> Document:
    """Return the page as HTML. The late import saves memory in the workers that never serve a page."""
    render = import_string("payments.docs.markdown.render")
    document: Document = render(read_file(page.file), resolve_link=partial(page_link, page=page))
    return document


@cache
def read_file(name: str) -> str:
    return (DIRECTORY / name).read_text()


def page_link(link: str, *, page: DocsPage) -> str:
    """Return a link of the Markdown file as a link of the page: to another page, as a relative URL.

    :raises KeyError: if the link leads to a file that is not a page
    """
    file, separator, anchor = link.partition("#")
    if not file or "://" in file:
        return link
    path = PATHS[normpath(join(dirname(page.file), file))]
    return f"{'../' * page.path.count('/')}{path}{separator}{anchor}" or "./"
