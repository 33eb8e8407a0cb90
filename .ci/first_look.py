"""Start scripts/serve, twice, and try all that it prints: curl line, pages, admin and documentation."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from http.client import HTTPResponse
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

ROOT = Path(__file__).resolve().parent.parent
SECONDS_MAX = 180
TRIES = 50
HAL = "application/hal+json"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

PRINTED = re.compile(
    r"""^Documentation +(\S+)
API +(\S+)
 +user name +(\S+)  \(the API key\)
 +password +\(none\)
Admin +(\S+)
 +user name +(\S+)
 +password +(\S+)

(curl .+)$""",
    re.MULTILINE,
)


class Printed(NamedTuple):
    """What somebody who has just begun is told."""

    documentation: str
    api: str
    key: str
    admin: str
    user_name: str
    password: str
    command: str

    @property
    def root(self) -> str:
        return self.admin.removesuffix("admin/")


def main() -> None:
    port = free_port()
    with serving(port) as printed:
        page = json.loads(answer_to(printed.command))
        ids = walk(page, printed.key)
        assert len(ids) == len(set(ids)) > page["count"]
        look_at_root(printed)
        look_at_pages(printed)
        log_in(printed)
    with serving(port) as again:
        assert again == printed
        assert json.loads(answer_to(again.command)) == page
        log_in(again)
    print(f"Following next gave {len(ids)} payments; pages, admin and documentation are there.", file=sys.stderr)


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@contextmanager
def serving(port: str) -> Iterator[Printed]:
    server = subprocess.Popen(
        [ROOT / "scripts/serve"],
        env={**os.environ, "PORT": port},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Printed(*printed_by(server))
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate()


def printed_by(server: subprocess.Popen[str]) -> tuple[str, ...]:
    assert server.stderr is not None
    text = ""
    for line in server.stderr:
        print(line, end="", file=sys.stderr)
        text += line
        if found := PRINTED.search(text.removesuffix("\n")):
            return found.groups()
    raise AssertionError("scripts/serve ended without saying where to look")


def answer_to(command: str) -> str:
    """Run the line as a person pastes it, again while the server is still starting."""
    for _ in range(TRIES):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
        if done.returncode == 0:
            return done.stdout
        time.sleep(0.2)
    raise AssertionError(done.stderr)


def walk(page: Any, key: str) -> list[str]:
    ids = [payment["id"] for payment in page["_embedded"]["payments"]]
    while link := page["_links"].get("next"):
        with opened(build_opener(), link["href"], Authorization=f"Bearer {key}") as response:
            page = json.load(response)
        ids += [payment["id"] for payment in page["_embedded"]["payments"]]
    return ids


def look_at_root(printed: Printed) -> None:
    with opened(build_opener(), printed.root, Accept=HAL) as response:
        assert json.load(response)["_links"]["payments"]["href"] == printed.api
    with opened(build_opener(), printed.root, Accept=BROWSER) as response:
        assert response.url.startswith(printed.documentation)
        assert "text/html" in response.headers["Content-Type"]


def look_at_pages(printed: Printed) -> None:
    credentials = b64encode(f"{printed.key}:".encode()).decode()
    with opened(build_opener(), printed.api, Accept=BROWSER, Authorization=f"Basic {credentials}") as response:
        page = response.read().decode()
    assert 'rel="next"' in page
    assert 'name="createdAt[gte]"' in page


def log_in(printed: Printed) -> None:
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    with opened(browser, printed.admin) as response:
        form, address = response.read().decode(), response.url
    token = unescape(re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)[1])  # type: ignore[index]
    fields = {"csrfmiddlewaretoken": token, "username": printed.user_name, "password": printed.password}
    with opened(browser, address, data=urlencode(fields)) as response:
        assert response.url == printed.admin, "the login was refused"


def opened(opener: OpenerDirector, address: str, *, data: str | None = None, **headers: str) -> HTTPResponse:
    request = Request(address, data.encode() if data else None, headers)  # noqa: S310  scripts/serve printed it
    response: HTTPResponse = opener.open(request, timeout=SECONDS_MAX)
    return response


if __name__ == "__main__":
    main()
