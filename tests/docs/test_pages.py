"""The pages of the documentation: their links, structure and examples."""

import contextlib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urldefrag, urljoin

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import override_script_prefix
from django.utils.module_loading import import_string
from pytest_django import Settings

from payments.api.links import ReferenceSection
from payments.docs.markdown import Section, SectionText, render
from payments.docs.pages import PAGES, DocsPage, page_link
from payments.docs.views import allow_data_images
from tests.support.commands import output_of
from tests.support.processes import ROOT

pytestmark = pytest.mark.once

SITE = "http://testserver"
DOCUMENTS = [f"/docs/{page.path}" for page in PAGES]
WITH_EXAMPLES = [path for path in DOCUMENTS if path not in {"/docs/changes/", "/docs/staff-guide/"}]
MARKDOWN = [f"/docs/{Path(page.file).name}" for page in PAGES]
INTERACTIVE = "/docs/interactive/"
HTML_PAGES = [*DOCUMENTS, INTERACTIVE]


class ParsedPage(HTMLParser):
    """The links, IDs and tags of a page."""

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

    def attributes_of(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def parsed_page(client: Client, path: str) -> ParsedPage:
    response = client.get(path)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/html; charset=utf-8"
    return ParsedPage(response.content.decode())


def test_each_page_has_its_title_and_its_language(client: Client) -> None:
    pages = [client.get(path).content.decode() for path in HTML_PAGES]

    assert [re.findall("<title>(.*)</title>", page) for page in pages] == [
        ["Quick start · Payments"],
        ["Samples · Payments"],
        ["Reference · Payments"],
        ["Synchronising · Payments"],
        ["Filling the service · Payments"],
        ["Importing · Payments"],
        ["Figures · Payments"],
        ["Changes · Payments"],
        ["Staff guide · Payments"],
        ["Try it · Payments"],
    ]
    assert {page.count("<h1") for page in pages} == {1}
    assert {page.count('<html lang="en">') for page in pages} == {1}


@pytest.mark.parametrize("path", HTML_PAGES)
def test_links_and_anchors_exist(client: Client, db: None, path: str) -> None:
    page = parsed_page(client, path)
    targets = [urldefrag(urljoin(f"{SITE}{path}", link)) for link in page.links]

    for url, anchor in {target for target in targets if target.url.startswith(SITE)}:
        with contextlib.closing(client.get(url.removeprefix(SITE))) as response:
            assert response.status_code == 200, url
            if anchor:
                assert anchor in ParsedPage(response.content.decode()).ids, f"{url}#{anchor}"
    assert len(page.ids) == len(set(page.ids))


def test_documentation_links_of_the_api_lead_to_sections(client: Client) -> None:
    assert set(get_args(ReferenceSection)) <= set(parsed_page(client, "/docs/reference/").ids)


def test_pages_link_only_to_these_other_sites(client: Client) -> None:
    links = {link for path in HTML_PAGES for link in parsed_page(client, path).links}

    assert {link for link in links if re.match("(?:https?:)?//", link)} == {
        "https://datatracker.ietf.org/doc/html/draft-kelly-json-hal",
        "https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/",
        "https://dlthub.com/docs",
        "https://pypi.org/project/openapi-python-client/",
        "https://www.npmjs.com/package/@hey-api/openapi-ts",
        "https://pypi.org/project/openapi-generator-cli/",
        "https://www.npmjs.com/package/openapi-fetch",
        "https://www.npmjs.com/package/openapi-typescript-codegen",
        "https://www.npmjs.com/package/orval",
        "https://docs.airbyte.com",
        "https://sdk.meltano.com",
        "https://www.rfc-editor.org/rfc/rfc6750",
        "https://www.rfc-editor.org/rfc/rfc8594",
        "https://www.rfc-editor.org/rfc/rfc9745",
        "https://www.rfc-editor.org/rfc/rfc9457",
    }


@pytest.mark.parametrize("path", HTML_PAGES)
def test_page_has_no_inline_styles_and_scripts(client: Client, path: str) -> None:
    page = parsed_page(client, path)

    assert page.attributes_of("style") == []
    assert [script for script in page.attributes_of("script") if "src" not in script] == []
    assert len(page.attributes_of("script")) == (3 if path == INTERACTIVE else 2)
    assert [
        name for _, attributes in page.tags for name in attributes if name == "style" or name.startswith("on")
    ] == []


@pytest.mark.parametrize("path", DOCUMENTS)
def test_examples_have_the_address_of_the_service(client: Client, settings: Settings, path: str) -> None:
    assert SITE in client.get(path).content.decode() or path.endswith("synchronising/")

    settings.PAYMENTS_PUBLIC_BASE_URL = "https://shop.example:8443/it's<b>&"
    page = client.get(path).content.decode()

    assert "https://shop.example:8443/it&#x27;s&lt;b&gt;&amp;" in page
    assert "it's<b>" not in page
    assert "pay.example" not in page
    assert "testserver" not in page


def test_links_have_the_prefix_of_the_site(client: Client) -> None:
    with override_script_prefix("/shop/"):
        page = client.get("/docs/reference/", SCRIPT_NAME="/shop").content.decode()

    assert 'href="/shop/docs/"' in page
    assert f"{SITE}/shop/v2/payments?limit=0" in page


@pytest.mark.parametrize("path", WITH_EXAMPLES)
def test_each_example_has_a_copy_button_that_a_script_displays(client: Client, path: str) -> None:
    page = parsed_page(client, path)
    buttons = [attributes for attributes in page.attributes_of("button") if "data-copy-beside" in attributes]

    assert len(buttons) == len(page.attributes_of("pre")) > 1
    assert all("hidden" in button and button["type"] == "button" for button in buttons)


@pytest.mark.parametrize("path", HTML_PAGES)
def test_search_is_hidden_until_a_script_displays_it(client: Client, path: str) -> None:
    [form] = parsed_page(client, path).attributes_of("form")

    assert (form["role"], form["data-index"]) == ("search", "/docs/search.json")
    assert "hidden" in form


def test_search_index_has_the_sections_of_all_pages(client: Client) -> None:
    ids = {f"{path}#{anchor}" for path in DOCUMENTS for anchor in section_ids(client, path)}

    response = client.get("/docs/search.json")
    entries = response.json()

    assert response["Content-Type"] == "application/json"
    assert {entry["url"] for entry in entries} == ids
    assert len(entries) == len(ids)
    assert list(dict.fromkeys(entry["page"] for entry in entries)) == [
        "Quick start",
        "Samples",
        "Reference",
        "Synchronising",
        "Filling the service",
        "Importing",
        "Figures",
        "Changes",
        "Staff guide",
    ]


def section_ids(client: Client, path: str) -> list[str | None]:
    page = parsed_page(client, path)
    return [attributes["id"] for tag, attributes in page.tags if tag in {"h1", "h2", "h3"}]


def test_search_index_has_the_address_of_the_service(client: Client, settings: Settings) -> None:
    settings.PAYMENTS_PUBLIC_BASE_URL = "https://shop.example/it's<b>"

    texts = [entry["examples"] for entry in client.get("/docs/search.json").json()]

    assert any("https://shop.example/it's<b>/v2/payments" in text for text in texts)
    assert not any("pay.example" in text for text in texts)


def test_links_of_the_search_index_have_the_prefix_of_the_site(client: Client) -> None:
    with override_script_prefix("/shop/"):
        entries = client.get("/docs/search.json", SCRIPT_NAME="/shop").json()

    assert entries[0]["url"].startswith("/shop/docs/#")


@pytest.mark.parametrize("path", [*HTML_PAGES, *MARKDOWN, "/llms.txt"])
def test_head_has_no_body(client: Client, path: str) -> None:
    head = client.head(path)

    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("word", ["duplicate", "versioning", "SDK", "changelog", "jq"])
def test_search_index_has_the_words_of_integrators(client: Client, word: str) -> None:
    assert word.lower() in client.get("/docs/search.json").content.decode().lower()


@pytest.mark.parametrize(("page", "path"), [*zip(PAGES, MARKDOWN, strict=True)])
def test_source_of_each_page_has_the_address_of_the_service(client: Client, page: DocsPage, path: str) -> None:
    response = client.get(path)

    source = (ROOT / "docs" / page.file).read_text().replace("https://pay.example", SITE)
    assert response.content.decode() == source.replace("](../", "](").replace("](api/", "](")
    assert response.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert response.headers["Cache-Control"] == client.get("/docs/").headers["Cache-Control"]


@pytest.mark.parametrize("path", MARKDOWN)
def test_links_between_sources_exist(client: Client, path: str) -> None:
    links = re.findall(r"\]\((?!https?:)(.*?)\)", client.get(path).content.decode())

    for url, anchor in {urldefrag(urljoin(path, link)) for link in links}:
        page = DOCUMENTS[MARKDOWN.index(url)]
        assert not anchor or anchor in parsed_page(client, page).ids, f"{url}#{anchor}"
    assert links


@pytest.mark.parametrize(("path", "source"), [*zip(DOCUMENTS, MARKDOWN, strict=True)])
def test_page_links_to_its_source(client: Client, path: str, source: str) -> None:
    links = [link for link in parsed_page(client, path).attributes_of("link") if link["rel"] == "alternate"]

    assert links == [{"rel": "alternate", "type": "text/markdown", "href": source}]


def test_sources_have_the_prefix_of_the_site(client: Client) -> None:
    with override_script_prefix("/shop/"):
        page = client.get("/docs/reference/", SCRIPT_NAME="/shop").content.decode()
        source = client.get("/docs/reference.md", SCRIPT_NAME="/shop").content.decode()

    assert 'href="/shop/docs/reference.md"' in page
    assert f"{SITE}/shop/v2/payments?limit=0" in source


def test_list_for_language_models_has_each_source_and_schema(client: Client) -> None:
    response = client.get("/llms.txt")
    title, empty, summary, *_ = lines = response.content.decode().splitlines()

    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert (title, empty, summary[:2]) == ("# Payments API", "", "> ")
    links = [match[1] for line in lines if (match := re.fullmatch(r"- \[[^]]+\]\((.*)\): .+", line))]
    assert sorted(links) == sorted(
        f"{SITE}{path}" for path in [*MARKDOWN, "/docs/openapi.json", "/docs/payment.schema.json"]
    )
    assert {client.get(link.removeprefix(SITE)).status_code for link in links} == {200}


@pytest.mark.parametrize(
    "path",
    [
        "/docs/nothing",
        "/docs/llms.txt",
        "/docs/index",
        "/docs/nothing.md",
        "/docs/reference/x",
        "/docs/api/index.md",
        "/docs/reliability/",
    ],
)
def test_unknown_path_is_an_html_404(client: Client, path: str) -> None:
    response = client.get(path, headers={"Accept": "text/html"})

    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("path", WITH_EXAMPLES)
def test_scrollable_frames_can_be_focused_and_have_a_label(client: Client, path: str) -> None:
    page = parsed_page(client, path)

    tables = [attributes for attributes in page.attributes_of("div") if attributes.get("class") == "table"]
    frames = page.attributes_of("pre") + tables
    assert len(frames) > 2
    assert all(frame["role"] == "group" and frame["tabindex"] == "0" and frame["aria-label"] for frame in frames)
    assert len(page.attributes_of("table")) == len(tables)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_table_of_contents_has_every_section(client: Client, path: str) -> None:
    page = parsed_page(client, path)
    sections = [attributes["id"] for tag, attributes in page.tags if tag in {"h2", "h3"}]

    contents = [link.removeprefix("#") for link in page.links if link.startswith("#") and link != "#content"]
    assert contents[: len(sections)] == sections


# The rendering of a document.


def test_headings_have_the_same_anchors_as_on_code_hosts() -> None:
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


def test_text_of_a_section_excludes_its_subsections_and_examples() -> None:
    section = "## Section\n\n```sh\ncurl  x\n```\n\n| a |\n|---|\n| b |"
    text = f"# Title\n\nOne `two`\nthree.\n\n{section}\n\n### Last\n\n- [c](d)"

    document = render(text, resolve_link=str)

    assert document.texts == [
        SectionText("title", "Title", "One two three.", ""),
        SectionText("section", "Section", "a b", "curl x"),
        SectionText("last", "Last", "c", ""),
    ]


def test_html_in_a_document_is_escaped() -> None:
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
def test_link_between_files_becomes_a_link_between_pages(file: str, link: str, expected: str) -> None:
    [page] = [page for page in PAGES if page.file == file]

    assert page_link(link, page=page) == expected


def test_link_to_a_file_without_a_page_is_an_error() -> None:
    with pytest.raises(KeyError, match=re.escape("reliability.md")):
        page_link("../reliability.md", page=PAGES[0])


RENDERING_MODULES = ["markdown_it", "payments.docs.markdown", "pygments.lexers.shell"]
IMPORTED_MODULES = f"""
import sys

import django
from django.test import Client
from django.urls import get_resolver

MODULES = set({RENDERING_MODULES})

django.setup()
get_resolver().url_patterns
before = MODULES & sys.modules.keys()
assert Client(headers={{"Host": "localhost"}}).get("/docs/").status_code == 200
print(sorted(before), sorted(MODULES & sys.modules.keys()))
"""


@pytest.mark.processes
def test_modules_for_rendering_are_imported_at_the_first_request() -> None:
    output = output_of([sys.executable, "-c", IMPORTED_MODULES], cwd=ROOT)

    assert output == f"[] {RENDERING_MODULES}\n"


@pytest.mark.parametrize(
    ("policy", "header"),
    [
        ({"img-src": ["'self'"]}, "img-src 'self' data:"),
        ({"img-src": "'self'"}, "img-src 'self' data:"),
        ({"img-src": ("a.example", "b.example")}, "img-src a.example b.example data:"),
        ({}, None),
    ],
)
def test_images_of_the_interactive_page_extend_the_projects_policy(
    settings: Settings, rf: RequestFactory, policy: dict[str, Any], header: str | None
) -> None:
    settings.SECURE_CSP, settings.CONTENT_SECURITY_POLICY = policy, {"DIRECTIVES": {"default-src": None, **policy}}
    if not policy:
        del settings.CONTENT_SECURITY_POLICY
    [middleware] = [import_string(name) for name in settings.MIDDLEWARE if "csp" in name]

    response = middleware(allow_data_images(lambda _request: HttpResponse()))(rf.get("/"))

    assert response.headers.get("Content-Security-Policy") == header
