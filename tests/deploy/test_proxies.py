"""nginx and Caddy with the files of deploy/, in front of the service: what clients see, and cannot pretend."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from django.conf import settings

from payments import api_keys
from payments.demo import SHOPS
from tests.support.migrated import fresh_database
from tests.support.ports import free_port
from tests.support.processes import ROOT, STOP_SECONDS_MAX, wait_until_listening
from tests.support.service import Service
from tests.support.tools import require

HOST = "pay.example"
BAD_KEYS_ALLOWED = 3
COUNT = 600
SLOW_SECONDS = 1.5


@dataclass
class Front:
    """A proxy that runs, and how a client reaches it."""

    name: str
    http_port: int
    https_port: int
    log: Path
    trusted: ssl.SSLContext
    network: str  # of which clients come, so that each proxy's have addresses of their own

    @contextmanager
    def connected(self, *, client: int = 1) -> Iterator[ssl.SSLSocket]:
        address = ("127.0.0.1", self.https_port)
        plain = socket.create_connection(address, source_address=(f"{self.network}.{client}", 0))
        with plain, self.trusted.wrap_socket(plain, server_hostname=HOST) as line:
            yield line

    def get(
        self, target: str, *, client: int = 1, headers: Mapping[str, str] | None = None
    ) -> tuple[HTTPResponse, bytes]:
        with self.connected(client=client) as line:
            connection = HTTPConnection(HOST)
            connection.sock = line
            connection.request("GET", target, headers=headers or {})
            response = connection.getresponse()
            return response, response.read()

    def get_in_clear(self, target: str) -> HTTPResponse:
        connection = HTTPConnection("127.0.0.1", self.http_port)
        connection.request("GET", target, headers={"Host": HOST})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    require("openssl")
    directory = tmp_path_factory.mktemp("certificate")
    files = directory / "payments.pem", directory / "payments.key"
    names = ("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}")
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "1")
    subprocess.run(
        ["openssl", "req", *kind, *names, "-out", files[0], "-keyout", files[1]], capture_output=True, check=True
    )
    return files


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service as deploy/payments.env has it, with payments."""
    directory = tmp_path_factory.mktemp("behind")
    given = {
        "ALLOWED_HOSTS": HOST,
        "PUBLIC_BASE_URL": f"https://{HOST}",
        "TRUST_PROXY": "true",
        "BAD_KEY_LIMIT": f"{BAD_KEYS_ALLOWED}/hour",
        "ACCESS_LOG": "true",
        "METRICS": "true",
        "RUNTIME_DIRECTORY": str(directory),
    }
    with fresh_database(directory) as url, Service(url, settings=given, log=directory / "log").serving() as service:
        service.create_demo_payments(COUNT)
        yield service


@pytest.fixture(scope="module")
def key(behind: Service) -> str:
    return behind.create_api_key(organization=SHOPS[0].id, mode="live")


Arguments = tuple[list[str], dict[str, str]]


def nginx(front: Front, *, upstreams: list[int], files: tuple[Path, Path], directory: Path) -> Arguments:
    """Return what starts it: ports, certificate, upstreams and the log's place are the test's, all else the file's."""
    text = (ROOT / "deploy/nginx.conf").read_text()
    servers = " ".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=5s;" for port in upstreams)
    for theirs, ours in (
        ("server 127.0.0.1:8000 max_fails=1 fail_timeout=5s;", servers),
        ("listen 80;", f"listen 127.0.0.1:{front.http_port};"),
        ("listen [::]:80;", ""),
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{front.https_port} ssl http2;"),
        ("listen [::]:443 ssl http2;", ""),
        ("/etc/ssl/certs/payments.pem", str(files[0])),
        ("/etc/ssl/private/payments.key", str(files[1])),
        ("/var/log/nginx/payments.log", str(front.log)),
        ("/var/log/nginx/payments-error.log", str(front.log)),
    ):
        assert theirs in text
        text = text.replace(theirs, ours)
    (directory / "payments.conf").write_text(text)
    kept = "".join(f"{kind}_temp_path {directory}/{kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
    around = (
        f"{'user root;' if os.geteuid() == 0 else ''} daemon off; pid {directory}/pid; events {{}}"
        f"http {{ client_body_temp_path {directory}/body; {kept} include {directory}/payments.conf; }}"
    )
    (directory / "nginx.conf").write_text(around)
    return ["nginx", "-e", str(front.log), "-c", str(directory / "nginx.conf")], {}


def caddy(front: Front, *, upstreams: list[int], files: tuple[Path, Path], directory: Path) -> Arguments:
    """Return what starts it: ports and certificate are the test's, all else the file's."""
    environment = {
        "PAYMENTS_HOST": HOST,
        "PAYMENTS_UPSTREAMS": " ".join(f"127.0.0.1:{port}" for port in upstreams),
        **{f"XDG_{kind}_HOME": str(directory) for kind in ("CONFIG", "DATA")},
    }
    adapted = subprocess.run(
        ["caddy", "adapt", "--config", ROOT / "deploy/Caddyfile"],
        env=os.environ | environment,
        capture_output=True,
        check=True,
    )
    configuration = json.loads(adapted.stdout)
    http = configuration["apps"]["http"]
    http |= {"http_port": front.http_port, "https_port": front.https_port}
    for server in http["servers"].values():
        server["listen"] = [
            {":80": f"127.0.0.1:{front.http_port}", ":443": f"127.0.0.1:{front.https_port}"}[port]
            for port in server["listen"]
        ]
    files_loaded = {"certificate": str(files[0]), "key": str(files[1])}
    configuration["apps"]["tls"] = {"certificates": {"load_files": [files_loaded]}}
    configuration["admin"] = {"disabled": True}
    (directory / "caddy.json").write_text(json.dumps(configuration))
    return ["caddy", "run", "--config", str(directory / "caddy.json")], environment


PROXIES: dict[str, tuple[Callable[..., Arguments], str]] = {"nginx": (nginx, "127.0.1"), "caddy": (caddy, "127.0.2")}


@contextmanager
def proxied(name: str, *, upstreams: list[int], files: tuple[Path, Path], directory: Path) -> Iterator[Front]:
    """Give a proxy that runs, in front of what listens on these ports."""
    require(name)
    arguments, network = PROXIES[name]
    trusted = ssl.create_default_context(cafile=files[0])
    front = Front(name, free_port(), free_port(), directory / "log", trusted, network)
    command, environment = arguments(front, upstreams=upstreams, files=files, directory=directory)
    with front.log.open("ab") as log:
        server = subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log)
    try:
        wait_until_listening(server, front.https_port)
        yield front
    finally:
        server.terminate()
        assert server.wait(timeout=STOP_SECONDS_MAX) == 0


@pytest.fixture(scope="module", params=PROXIES)
def front(
    request: pytest.FixtureRequest,
    behind: Service,
    certificate: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Front]:
    """A proxy with the service behind it, and with another that is down."""
    upstreams = [free_port(), behind.port]
    directory = tmp_path_factory.mktemp(request.param)
    with proxied(request.param, upstreams=upstreams, files=certificate, directory=directory) as front:
        yield front


def test_a_walk_through_the_proxy_gives_every_payment_once_by_links_that_are_https(front: Front, key: str) -> None:
    pages: list[Any] = []
    target: str | None = "/v2/payments?limit=250"
    while target is not None:
        response, body = front.get(target, headers={"Authorization": f"Bearer {key}"})
        assert response.status == 200, body
        pages.append(msgspec.json.decode(body))
        href = pages[-1]["_links"].get("next", {}).get("href")
        target = href and "{0.path}?{0.query}".format(urlsplit(href))

    ids = [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]
    links = [link["href"] for page in pages for link in page["_links"].values()]
    assert len(ids) == len(set(ids)) > 0
    assert len(pages) > 1
    assert {urlsplit(link)[:2] for link in links} == {("https", HOST)}


def test_one_that_is_down_is_passed_over(front: Front) -> None:
    statuses = [front.get("/healthz")[0].status for _ in range(10)]

    assert statuses == [200] * 10


@pytest.mark.parametrize("target", ["/metrics", "/metrics?a=b", "/%6detrics", "/m%65trics"])
def test_figures_are_not_let_out(front: Front, target: str) -> None:
    response, _ = front.get(target)

    assert response.status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Forwarded-Proto": "http"},
        {"X_Forwarded_Proto": "http"},
        {"X-Forwarded-Host": "elsewhere.example"},
        {"X_Forwarded_Host": "elsewhere.example"},
        {"Forwarded": "proto=http;host=elsewhere.example"},
    ],
    ids=str,
)
def test_a_page_is_served_as_asked_whatever_a_client_says_of_its_way(front: Front, headers: dict[str, str]) -> None:
    """A word that counted would have it redirected, or refused."""
    response, _ = front.get("/docs/", headers=headers)

    assert response.status == 200


@pytest.mark.parametrize(("header", "first_client"), [("X-Forwarded-For", 10), ("X_Forwarded_For", 20)])
def test_bad_keys_are_counted_by_the_address_that_they_come_from(front: Front, header: str, first_client: int) -> None:
    def show_bad_key(client: int, *, pretended: str) -> int:
        headers = {header: pretended, "Authorization": f"Bearer {api_keys.new_key('live')}"}
        return front.get("/v2/payments", client=client, headers=headers)[0].status

    pretending = [show_bad_key(first_client, pretended=f"192.0.2.{n}") for n in range(BAD_KEYS_ALLOWED + 1)]
    another = show_bad_key(first_client + 1, pretended="192.0.2.0")

    assert pretending == [401] * BAD_KEYS_ALLOWED + [429]
    assert another == 401


def test_a_body_that_comes_slowly_is_handed_on_whole(front: Front, behind: Service) -> None:
    """By itself the service would have cut it off."""
    body = b"username=nobody&password=none"
    head = (
        f"POST /admin/login/?slowly HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with front.connected(client=30) as line:
        line.sendall(head.encode() + body[:5])
        time.sleep(SLOW_SECONDS)
        line.sendall(body[5:])
        response = HTTPResponse(line)
        response.begin()

    assert response.status == 403  # there was no token: the form was read


def test_a_request_that_is_not_finished_is_not_handed_on(front: Front, behind: Service) -> None:
    assert behind.log is not None
    with front.connected() as line:
        line.sendall(f"POST /unfinished HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 100\r\n\r\n12345".encode())
        time.sleep(SLOW_SECONDS)

    assert "/unfinished" not in behind.log.read_text()


def test_a_body_that_is_too_large_is_refused(front: Front) -> None:
    length = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1
    with front.connected() as line:
        line.sendall(f"POST /admin/login/ HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {length}\r\n\r\n".encode())
        line.sendall(b"a" * length)
        response = HTTPResponse(line)
        response.begin()

    assert response.status in {413, 502}  # the latter by Caddy 2.6


def test_in_clear_a_page_leads_to_tls_and_a_key_is_refused(front: Front) -> None:
    page = front.get_in_clear("/docs/")
    api = front.get_in_clear("/v2/payments")

    assert (page.status, page.getheader("Location")) == (308, f"https://{HOST}/docs/")
    assert (api.status, api.getheader("Location")) == (403, None)


def test_who_breaks_off_harms_nobody_else(front: Front) -> None:
    for _ in range(3):
        with front.connected() as line:
            line.sendall(f"POST /admin/login/ HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 100\r\n\r\n12345".encode())

    statuses = [front.get("/healthz")[0].status for _ in range(10)]

    assert statuses == [200] * 10


@pytest.mark.parametrize("name", PROXIES)
def test_what_was_asked_for_is_not_logged_even_where_all_are_down(
    name: str, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    with proxied(name, upstreams=[free_port()], files=certificate, directory=tmp_path) as front:
        response, _ = front.get("/v2/payments?metadata[order]=canary")
        front.get("/metrics?canary")

    assert response.status in {502, 503}
    assert "canary" not in front.log.read_text()


@pytest.mark.needs("caddy")
def test_the_caddyfile_is_written_as_caddy_writes_it(tmp_path: Path) -> None:
    file = shutil.copy(ROOT / "deploy/Caddyfile", tmp_path)

    subprocess.run(["caddy", "fmt", "--overwrite", file], check=True, capture_output=True)

    assert Path(file).read_text() == (ROOT / "deploy/Caddyfile").read_text()
