"""Static files: names with a hash, which browsers keep, and compressed content."""

import gzip
import re
from pathlib import Path

import pytest
from django.templatetags.static import static
from django.test import Client
from pytest_django import Settings

from payments.service import static_files

NAME = "docs/page.css"
CONTENT = (Path(__file__).parents[2] / "payments/static" / NAME).read_bytes()
HASHED_LINK = re.compile(r"/static/[\w./-]+\.[0-9a-f]{12}\.\w+")
IMMUTABLE = "public, max-age=31536000, immutable"


@pytest.fixture(autouse=True)
def deployed(settings: Settings) -> None:
    """Serve the files as a deployed service does."""
    settings.WHITENOISE_AUTOREFRESH = False
    static_files.load.cache_clear()


def with_hash(link: str, digest: str) -> str:
    return re.sub(r"\.[0-9a-f]{12}\.", f".{digest}.", link)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/docs/", "/docs/interactive/", "/admin/login/", "/favicon.ico"])
def test_pages_link_to_names_with_a_hash_that_browsers_keep(client: Client, path: str) -> None:
    response = client.get(path)
    page = response.get("Location") or response.content.decode()
    links = re.findall(r"/static/[^\"]+", page)

    assert len(links) > 0
    assert [link for link in links if not HASHED_LINK.fullmatch(link)] == []
    assert {client.get(link)["Cache-Control"] for link in links} == {IMMUTABLE}


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "gzip"),
        ("br;q=1.0, gzip;q=0.5", "gzip"),
        ("br, gzip;q=0", None),
        ("gzip;q=0.0, br", None),
        ("br", None),
        ("", None),
    ],
)
def test_file_is_compressed_if_the_browser_accepts_it(client: Client, accepted: str, encoding: str | None) -> None:
    response = client.get(static(NAME), headers={"Accept-Encoding": accepted})

    assert response.get("Content-Encoding") == encoding
    assert (gzip.decompress(response.content) if encoding else response.content) == CONTENT
    assert response["Content-Type"] == "text/css"
    assert response["Vary"] == "Accept-Encoding"
    assert int(response["Content-Length"]) == len(response.content)


def test_page_of_another_version_gets_this_versions_file_and_does_not_keep_it(client: Client) -> None:
    response = client.get(with_hash(static(NAME), "0123456789ab"))

    assert (response.status_code, response.content) == (200, CONTENT)
    assert response["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/static/docs/nothing.0123456789ab.css",
        "/static/docs.0123456789ab.css",
        "/static/docs//page.0123456789ab.css",
        "/static/./docs/page.0123456789ab.css",
        "/static/docs/../docs/page.0123456789ab.css",
        "/static/../settings.0123456789ab.py",
        "/static/docs/page.0123456789AB.css",
    ],
)
def test_other_names_are_not_found_and_not_cached(client: Client, path: str) -> None:
    client.get("/nothing")  # its page loads its style sheets
    before = static_files.load.cache_info().currsize

    status = client.get(path).status_code

    assert status == 404
    assert static_files.load.cache_info().currsize == before


def test_replaced_file_does_not_change_what_a_worker_serves(client: Client, settings: Settings, tmp_path: Path) -> None:
    """An upgrade replaces files before it restarts the workers."""
    settings.STATICFILES_DIRS = [tmp_path]
    (tmp_path / "replaced.css").write_text("old")
    link = static("replaced.css")
    (tmp_path / "replaced.css").write_text("new")

    response = client.get(link)

    assert static("replaced.css") == link
    assert (response.content, response["Cache-Control"]) == (b"old", IMMUTABLE)


def test_name_of_a_missing_file_has_no_hash() -> None:
    assert static("docs/nothing.css") == "/static/docs/nothing.css"


def test_name_without_a_hash_is_kept_for_a_minute(client: Client) -> None:
    response = client.get(f"/static/{NAME}")

    assert b"".join(response) == CONTENT
    assert response["Cache-Control"] == "max-age=60, public"


def test_files_that_may_change_have_no_hash(settings: Settings) -> None:
    settings.WHITENOISE_AUTOREFRESH = True

    assert static(NAME) == f"/static/{NAME}"
