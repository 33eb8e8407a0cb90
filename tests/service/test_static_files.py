"""Static files: names with a hash, which browsers keep, and compressed content. scripts/install has collected them."""

import gzip
import re
from contextlib import closing

import pytest
from django.templatetags.static import static
from django.test import Client
from pytest_django import Settings

from payments_site.settings import STORAGES
from tests.support.processes import ROOT

pytestmark = pytest.mark.once

NAME = "docs/page.css"
CONTENT = (ROOT / "payments/static" / NAME).read_bytes()
HASHED_LINK = re.compile(r"/static/[\w./-]+\.[0-9a-f]{12}\.\w+")


@pytest.fixture(autouse=True)
def deployed(settings: Settings) -> None:
    """Serve the files as a deployed service does."""
    settings.STORAGES = STORAGES
    settings.WHITENOISE_AUTOREFRESH = settings.WHITENOISE_USE_FINDERS = False


def cache_control(client: Client, link: str) -> str:
    with closing(client.get(link)) as response:  # it has an open file
        return response["Cache-Control"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/docs/", "/docs/interactive/", "/admin/login/", "/nothing", "/favicon.ico"])
def test_pages_link_to_names_with_a_hash_that_browsers_keep(client: Client, path: str) -> None:
    response = client.get(path)
    page = response.get("Location") or response.content.decode()
    links = re.findall(r"/static/[^\"]+", page)

    assert len(links) > 0
    assert [link for link in links if not HASHED_LINK.fullmatch(link)] == []
    assert [link for link in links if "immutable" not in cache_control(client, link)] == []


@pytest.mark.parametrize(("accepted", "encoding"), [("gzip, deflate, br, zstd", "gzip"), ("br", None), ("", None)])
def test_file_is_compressed_if_the_browser_accepts_it(client: Client, accepted: str, encoding: str | None) -> None:
    response = client.get(static(NAME), headers={"Accept-Encoding": accepted})
    content = b"".join(response)

    assert response.get("Content-Encoding") == encoding
    assert (gzip.decompress(content) if encoding else content) == CONTENT
    assert response["Content-Type"] == 'text/css; charset="utf-8"'
    assert response["Vary"] == "Accept-Encoding"
    assert int(response["Content-Length"]) == len(content)


@pytest.mark.parametrize(
    "name", ["docs/page.0123456789ab.css", "docs//page.css", "docs/../docs/page.css", "../urls.py"]
)
def test_other_names_are_not_found(client: Client, name: str) -> None:
    assert client.get(f"/static/{name}").status_code == 404


def test_name_without_a_hash_is_kept_for_a_minute(client: Client) -> None:
    response = client.get(f"/static/{NAME}")

    assert b"".join(response) == CONTENT
    assert response["Cache-Control"] == "max-age=60, public"
