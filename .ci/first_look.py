"""Start scripts/serve twice, and use everything that it prints: the curl command, the pages, the admin."""

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
TIMEOUT_SECONDS = 180
ATTEMPTS = 50
HAL = "application/hal+json"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

INSTRUCTIONS = re.compile(
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


class Instructions(NamedTuple):
    """The addresses and credentials that scripts/serve prints."""

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
    with serving(port) as instructions:
        page = json.loads(run_command(instructions.command))
        ids = walk(page, instructions.key)
        assert len(ids) == len(set(ids)) > page["count"]
        check_root(instructions)
        check_pages(instructions)
        log_in(instructions)
    with serving(port) as second_instructions:
        assert second_instructions == instructions
        assert json.loads(run_command(second_instructions.command)) == page
        log_in(second_instructions)
    print(
        f"The walk returned {len(ids)} payments. The API's pages, the admin and the documentation work.",
        file=sys.stderr,
    )


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@contextmanager
def serving(port: str) -> Iterator[Instructions]:
    server = subprocess.Popen(
        [ROOT / "scripts/serve"],
        env={**os.environ, "PORT": port},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Instructions(*read_instructions(server))
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate()


def read_instructions(server: subprocess.Popen[str]) -> tuple[str, ...]:
    assert server.stderr is not None
    text = ""
    for line in server.stderr:
        print(line, end="", file=sys.stderr)
        text += line
        if match := INSTRUCTIONS.search(text.removesuffix("\n")):
            return match.groups()
    raise AssertionError("scripts/serve ended without printing its instructions")


def run_command(command: str) -> str:
    """Run a shell command until it succeeds, because the server may still be starting. Return its stdout."""
    for _ in range(ATTEMPTS):
        completed = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
        if completed.returncode == 0:
            return completed.stdout
        time.sleep(0.2)
    raise AssertionError(completed.stderr)


def walk(page: Any, key: str) -> list[str]:
    ids = [payment["id"] for payment in page["_embedded"]["payments"]]
    while link := page["_links"].get("next"):
        with open_url(build_opener(), link["href"], Authorization=f"Bearer {key}") as response:
            page = json.load(response)
        ids += [payment["id"] for payment in page["_embedded"]["payments"]]
    return ids


def check_root(instructions: Instructions) -> None:
    with open_url(build_opener(), instructions.root, Accept=HAL) as response:
        assert json.load(response)["_links"]["payments"]["href"] == instructions.api
    with open_url(build_opener(), instructions.root, Accept=BROWSER) as response:
        assert response.url.startswith(instructions.documentation)
        assert "text/html" in response.headers["Content-Type"]


def check_pages(instructions: Instructions) -> None:
    credentials = b64encode(f"{instructions.key}:".encode()).decode()
    with open_url(build_opener(), instructions.api, Accept=BROWSER, Authorization=f"Basic {credentials}") as response:
        page = response.read().decode()
    assert 'rel="next"' in page
    assert 'name="createdAt[gte]"' in page


def log_in(instructions: Instructions) -> None:
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    with open_url(browser, instructions.admin) as response:
        form, form_url = response.read().decode(), response.url
    token = unescape(re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)[1])  # type: ignore[index]
    fields = {"csrfmiddlewaretoken": token, "username": instructions.user_name, "password": instructions.password}
    with open_url(browser, form_url, data=urlencode(fields)) as response:
        assert response.url == instructions.admin, "the admin refused the login"


def open_url(opener: OpenerDirector, url: str, *, data: str | None = None, **headers: str) -> HTTPResponse:
    request = Request(url, data.encode() if data else None, headers)  # noqa: S310  the URL comes from scripts/serve
    response: HTTPResponse = opener.open(request, timeout=TIMEOUT_SECONDS)
    return response


if __name__ == "__main__":
    main()
