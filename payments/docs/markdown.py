"""Renders Markdown as HTML: CommonMark with tables, and with the heading anchors that GitHub has."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise, takewhile
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

SECTION, SUBSECTION = "h2", "h3"


class Section(NamedTuple):
    """An entry of the table of contents."""

    anchor: str
    title: str
    subsections: list["Section"]


class SectionText(NamedTuple):
    """The text and the examples of a section, without its subsections."""

    anchor: str
    title: str
    text: str
    examples: str


class Document(NamedTuple):
    """A rendered document. The body is HTML."""

    title: str
    contents: list[Section]
    texts: list[SectionText]
    body: str


def render(text: str, *, resolve_link: Callable[[str], str]) -> Document:
    """Return the document as HTML. `resolve_link` returns the target of each link."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.use(anchors_plugin, max_level=3)
    parser.core.ruler.push("heading_links", link_headings)
    parser.add_render_rule("fence", render_example)
    parser.add_render_rule("table_open", open_table)
    parser.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    tokens = parser.parse(text)
    for link in (child for token in tokens for child in token.children or [] if child.type == "link_open"):
        link.attrSet("href", resolve_link(str(link.attrs["href"])))
    title, contents = outline(tokens)
    return Document(title, contents, section_texts(tokens), parser.renderer.render(tokens, parser.options, {}))


def render_example(_renderer: object, tokens: Sequence[Token], index: int, *_options: object) -> str:
    """Return highlighted code in a frame that scrolls, also with the keyboard. A script displays the button."""
    code, language = tokens[index].content, tokens[index].info
    html = highlight(code, get_lexer_by_name(language), HtmlFormatter(nowrap=True))
    return (
        f'<div class="example {language}">'
        f'<pre role="group" aria-label="Example: {language}" tabindex="0"><code>{html}</code></pre>'
        '<button type="button" hidden data-copy-beside="code">Copy</button></div>\n'
    )


def link_headings(state: StateCore) -> None:
    for heading, inline in headings(state.tokens):
        if heading.tag != "h1":
            link = Token("link_open", "a", 1, attrs={"href": f"#{heading.attrs['id']}"})
            inline.children = [link, *(inline.children or []), Token("link_close", "a", -1)]


def open_table(_renderer: object, tokens: Sequence[Token], index: int, *_options: object) -> str:
    """Return the beginning of a table in a frame that scrolls. The cells of the table's head are the frame's label."""
    head = takewhile(lambda token: token.type != "thead_close", tokens[index:])
    label = ", ".join(filter(None, (plain_text(token) for token in head if token.type == "inline")))
    return f'<div class="table" role="group" aria-label="{escape(label)}" tabindex="0">\n<table>\n'


def headings(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    return ((token, inline) for token, inline in pairwise(tokens) if token.type == "heading_open")


def outline(tokens: Sequence[Token]) -> tuple[str, list[Section]]:
    """Return the title and the table of contents, which has two levels."""
    title = ""
    contents: list[Section] = []
    for heading, inline in headings(tokens):
        section = Section(str(heading.attrs["id"]), plain_text(inline), [])
        if heading.tag == SECTION:
            contents.append(section)
        elif heading.tag == SUBSECTION:
            contents[-1].subsections.append(section)
        else:
            title = section.title
    return title, contents


def plain_text(inline: Token) -> str:
    return "".join(" " if child.type == "softbreak" else child.content for child in inline.children or [])


def section_texts(tokens: Sequence[Token]) -> list[SectionText]:
    """Return the text of each section, and that between the title and the first section."""
    starts = [index for index, token in enumerate(tokens) if token.type == "heading_open"]
    texts = []
    for start, end in pairwise([*starts, len(tokens)]):
        heading, inline, *content = tokens[start:end]
        text = " ".join(plain_text(token) for token in content if token.type == "inline")
        examples = " ".join(token.content for token in content if token.type == "fence")
        parts = (" ".join(part.split()) for part in (text, examples))
        texts.append(SectionText(str(heading.attrs["id"]), plain_text(inline), *parts))
    return texts
