"""A document as HTML: CommonMark with tables, as the repository shows it, and headings that can be linked to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

SECTION, SUBSECTION = "h2", "h3"


class Section(NamedTuple):
    """An entry of the contents."""

    anchor: str
    title: str
    sections: list[Section]


class Document(NamedTuple):
    """What a page shows: its title, its contents, and its text as HTML."""

    title: str
    contents: list[Section]
    body: str


def render(text: str, *, address_of: Callable[[str], str]) -> Document:
    """Return a document whose links lead where `address_of` says."""
    parser = MarkdownIt("commonmark", {"html": False, "highlight": highlighted}).enable("table")
    parser.use(anchors_plugin, max_level=3)
    parser.core.ruler.push("heading_links", link_headings)
    parser.core.ruler.push("table_frames", frame_tables)
    tokens = parser.parse(text)
    for link in links(tokens):
        link.attrSet("href", address_of(str(link.attrs["href"])))
    title, contents = outlined(tokens)
    return Document(title, contents, parser.renderer.render(tokens, parser.options, {}))


def highlighted(code: str, language: str, _attributes: str) -> str:
    """Return an example, which scrolls within itself, for a keyboard too."""
    shown = highlight(code, get_lexer_by_name(language), HtmlFormatter(nowrap=True))
    return (
        f'<pre class="{language}" role="group" aria-label="Example: {language}" tabindex="0"><code>{shown}</code></pre>'
    )


def link_headings(state: StateCore) -> None:
    """Make each heading below the title a link to itself."""
    for heading, inline in headings(state.tokens):
        if heading.tag != "h1":
            opening = Token("link_open", "a", 1, attrs={"href": f"#{heading.attrs['id']}"})
            inline.children = [opening, *(inline.children or []), Token("link_close", "a", -1)]


def frame_tables(state: StateCore) -> None:
    """Put each table into a frame, which scrolls where there is no room for it, and is named by the table's head."""
    framed: list[Token] = []
    for place, token in enumerate(state.tokens):
        if token.type == "table_open":
            framed.append(frame(head(state.tokens[place:])))
        framed.append(token)
        if token.type == "table_close":
            framed.append(Token("frame_close", "div", -1, block=True))
    state.tokens = framed


def frame(name: str) -> Token:
    return Token(
        "frame_open", "div", 1, attrs={"class": "table", "role": "group", "aria-label": name, "tabindex": 0}, block=True
    )


def head(table: Sequence[Token]) -> str:
    """Return what stands in the cells of a table's head."""
    end = next(place for place, token in enumerate(table) if token.type == "thead_close")
    return ", ".join(filter(None, (plain(token) for token in table[:end] if token.type == "inline")))


def links(tokens: Sequence[Token]) -> Iterator[Token]:
    return (child for token in tokens for child in token.children or [] if child.type == "link_open")


def headings(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Yield each heading, and what stands in it."""
    return ((token, inline) for token, inline in pairwise(tokens) if token.type == "heading_open")


def outlined(tokens: Sequence[Token]) -> tuple[str, list[Section]]:
    """Return the title and the contents: sections, and theirs."""
    title = ""
    contents: list[Section] = []
    for heading, inline in headings(tokens):
        section = Section(str(heading.attrs["id"]), plain(inline), [])
        if heading.tag == SECTION:
            contents.append(section)
        elif heading.tag == SUBSECTION:
            contents[-1].sections.append(section)
        else:
            title = section.title
    return title, contents


def plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or [])
