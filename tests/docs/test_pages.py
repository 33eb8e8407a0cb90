"""The documentation's pages: all there, whole, and of this service alone."""

import contextlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urldefrag, urljoin

import pytest
from django.test import Client
from django.test.utils import override_script_prefix
from pytest_django import Settings

from payments.docs.markdown import Section, render
from payments.docs.pages import PAGES, page_link
from tests.support.processes import ROOT

SITE = "http://testserver"
DOCUMENTS = [f"/docs/{page.path}" for page in PAGES]
INTERACTIVE = "/docs/interactive/"
HTML_PAGES = [*DOCUMENTS, INTERACTIVE]


class Parsed(HTMLParser):
    """What a page is made of, as far as it is looked at here."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self.links += [attributes[name] or "" for name in ("href", "src", "data-openapi") if name in attributes]
        self.ids += [attributes["id"] or ""] if "id" in attributes else []

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def parsed(client: Client, path: str) -> Parsed:
    response = client.get(path)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/html; charset=utf-8"
    return Parsed(response.content.decode())


def test_every_page_has_a_title_of_its_own_and_says_its_language(client: Client) -> None:
    pages = [client.get(path).content.decode() for path in HTML_PAGES]

    assert [re.findall("<title>(.*)</title>", page) for page in pages] == [
        ["Payments API · Payments"],
        ["Reference · Payments"],
        ["Synchronising · Payments"],
        ["Try it · Payments"],
    ]
    assert {page.count("<h1") for page in pages} == {1}
    assert {page.count('<html lang="en">') for page in pages} == {1}


@pytest.mark.parametrize("path", HTML_PAGES)
def test_every_link_leads_somewhere_and_every_anchor_is_there(client: Client, db: None, path: str) -> None:
    page = parsed(client, path)
    targets = [urldefrag(urljoin(f"{SITE}{path}", link)) for link in page.links]

    for url, anchor in {target for target in targets if target.url.startswith(SITE)}:
        with contextlib.closing(client.get(url.removeprefix(SITE))) as response:
            assert response.status_code == 200, url
            if anchor:
                assert anchor in Parsed(response.content.decode()).ids, f"{url}#{anchor}"
    assert len(page.ids) == len(set(page.ids))


def test_pages_link_to_nothing_but_what_is_named_here_elsewhere(client: Client) -> None:
    """Links of the documents' own, that is; nothing is loaded from there."""
    found = {link for path in HTML_PAGES for link in parsed(client, path).links if re.match("(?:https?:)?//", link)}

    assert found == {
        "https://datatracker.ietf.org/doc/html/draft-kelly-json-hal",
        "https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/",
        "https://dlthub.com/docs",
        "https://www.rfc-editor.org/rfc/rfc6750",
        "https://www.rfc-editor.org/rfc/rfc9457",
    }


@pytest.mark.parametrize("path", HTML_PAGES)
def test_no_page_has_a_style_or_a_script_within_itself(client: Client, path: str) -> None:
    page = parsed(client, path)

    assert page.all("style") == []
    assert [script for script in page.all("script") if "src" not in script] == []
    assert len(page.all("script")) == (2 if path == INTERACTIVE else 0)
    assert [
        name for _, attributes in page.tags for name in attributes if name == "style" or name.startswith("on")
    ] == []


@pytest.mark.parametrize("path", DOCUMENTS)
def test_examples_ask_the_service_that_shows_them(client: Client, settings: Settings, path: str) -> None:
    assert f"{SITE}/v2/payments" in client.get(path).content.decode() or path.endswith("synchronising/")

    settings.PUBLIC_BASE_URL = "https://shop.example:8443/it's<b>&"
    page = client.get(path).content.decode()

    assert "https://shop.example:8443/it&#x27;s&lt;b&gt;&amp;" in page
    assert "it's<b>" not in page
    assert "pay.example" not in page
    assert "testserver" not in page


def test_pages_are_where_the_site_is_mounted(client: Client) -> None:
    with override_script_prefix("/shop/"):
        page = client.get("/docs/reference/", SCRIPT_NAME="/shop").content.decode()

    assert 'href="/shop/docs/"' in page
    assert f"{SITE}/shop/v2/payments?limit=0" in page


@pytest.mark.parametrize("path", HTML_PAGES)
def test_a_page_can_be_asked_for_its_head_alone(client: Client, path: str) -> None:
    head = client.head(path)

    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("path", ["/docs/nothing", "/docs/reference/x", "/docs/api/index.md", "/docs/reliability/"])
def test_another_address_below_is_the_sites_ordinary_404(client: Client, path: str) -> None:
    response = client.get(path)

    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("path", DOCUMENTS)
def test_what_scrolls_within_itself_can_be_reached_and_has_a_name(client: Client, path: str) -> None:
    page = parsed(client, path)

    frames = [attributes for tag, attributes in page.tags if tag == "pre" or attributes.get("class") == "table"]
    assert len(frames) > 3
    assert all(frame["role"] == "group" and frame["tabindex"] == "0" and frame["aria-label"] for frame in frames)
    assert len(page.all("table")) == len([frame for frame in frames if frame["class"] == "table"])


@pytest.mark.parametrize("path", DOCUMENTS)
def test_the_contents_name_every_section(client: Client, path: str) -> None:
    page = parsed(client, path)
    sections = [attributes["id"] for tag, attributes in page.tags if tag in {"h2", "h3"}]

    contents = [link.removeprefix("#") for link in page.links if link.startswith("#") and link != "#content"]
    assert contents[: len(sections)] == sections


# What a document becomes.


def test_headings_have_the_anchors_that_the_repository_has() -> None:
    text = "# A title\n\n## `GET` it, 2 ways\n\n### A_b: c/d?\n\n### A_b: c/d?\n\n## Last & *least*"

    document = render(text, resolve_link=str)

    assert document.title == "A title"
    assert document.contents == [
        Section(
            "get-it-2-ways",
            "GET it, 2 ways",
            [Section("a_b-cd", "A_b: c/d?", []), Section("a_b-cd-1", "A_b: c/d?", [])],
        ),
        Section("last--least", "Last & least", []),
    ]
    assert '<h2 id="get-it-2-ways"><a href="#get-it-2-ways"><code>GET</code> it, 2 ways</a></h2>' in document.body


def test_what_a_document_holds_is_text() -> None:
    document = render("# <b>\n\n<script>alert(1)</script>\n\n```sh\n<i>&\n```\n", resolve_link=str)

    assert not re.search("<(?:b|i|script)>", document.body)
    assert document.title == "<b>"


@pytest.mark.parametrize(
    ("file", "link", "expected"),
    [
        ("api/index.md", "reference.md", "reference/"),
        ("api/index.md", "reference.md#errors", "reference/#errors"),
        ("api/index.md", "../synchronising.md", "synchronising/"),
        ("api/index.md", "index.md", "./"),
        ("api/reference.md", "index.md", "../"),
        ("api/reference.md", "../synchronising.md#python", "../synchronising/#python"),
        ("synchronising.md", "api/reference.md", "../reference/"),
        ("synchronising.md", "#python", "#python"),
        ("synchronising.md", "https://dlthub.com/docs", "https://dlthub.com/docs"),
    ],
)
def test_a_link_between_files_leads_from_page_to_page(file: str, link: str, expected: str) -> None:
    [page] = [page for page in PAGES if page.file == file]

    assert page_link(link, page=page) == expected


def test_a_link_to_what_is_no_page_is_found_out() -> None:
    with pytest.raises(KeyError, match=re.escape("reliability.md")):
        page_link("../reliability.md", page=PAGES[0])


def test_a_worker_that_is_never_asked_loads_nothing_for_it() -> None:
    done = run(
        """
        from django.test import Client
        from django.urls import get_resolver

        get_resolver().url_patterns
        before = LOADED & sys.modules.keys()
        assert Client(headers={"Host": "localhost"}).get("/docs/").status_code == 200
        print(sorted(before), sorted(LOADED & sys.modules.keys()))
        """
    )

    names = ["markdown_it", "payments.docs.markdown", "pygments.lexers.shell"]
    assert done == f"[] {names}\n"


def run(program: str) -> Any:
    lines = [line.removeprefix(" " * 8) for line in program.splitlines()]
    begun = [
        "import sys, django",
        "django.setup()",
        "LOADED = {'markdown_it', 'pygments.lexers.shell', 'payments.docs.markdown'}",
    ]
    return subprocess.run(
        [sys.executable, "-c", "\n".join([*begun, *lines])], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
