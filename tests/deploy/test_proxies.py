"""nginx and Caddy with the files of deploy/: responses through the proxy, and headers that clients cannot forge."""

import gzip
import json
import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import msgspec
import pytest
from django.conf import settings

from payments.admin.login import ACCOUNT_ATTEMPTS
from payments.api.streams import BYTES_MAX
from payments.demo import SHOPS
from payments.models import KeyScope
from tests.support.commands import output_of
from tests.support.lines import line
from tests.support.migrated import fresh_database
from tests.support.ports import free_port
from tests.support.processes import ROOT, wait_until_listening
from tests.support.service import Service
from tests.support.tools import require
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.extended]

HOST = "pay.example"
OTHER_HOST = "elsewhere.example"
COUNT = 600
IMPORTS = "/v2/payments/imports"
LINES = {"Content-Type": "application/x-ndjson"}
REQUESTS_OF_A_KEY_MAX = 32  # in deploy/nginx.conf
SLOW_SECONDS = 1.5

# The oldest versions that the files in deploy/ fit without changes.
OLDEST = {"nginx": (1, 25, 1), "caddy": (2, 6, 4)}
VERSION_ARGUMENTS = {"nginx": ["-v"], "caddy": ["version"]}

# The programs, and the network of each one's clients, because the service and nginx count requests by address.
PROGRAMS = {"nginx": "127.0.1", "nginx-current": "127.0.2", "caddy": "127.0.3", "caddy-current": "127.0.4"}


@dataclass
class Proxy:
    """A running proxy."""

    program: str
    name: str  # without its version: "nginx" or "caddy"
    http_port: int
    https_port: int
    log: Path
    trusted: ssl.SSLContext
    network: str  # of the clients, so that the clients of each proxy have different addresses

    @contextmanager
    def connected(self, *, client: int = 1) -> Iterator[ssl.SSLSocket]:
        address = ("127.0.0.1", self.https_port)
        plain = socket.create_connection(address, source_address=(f"{self.network}.{client}", 0))
        with plain, self.trusted.wrap_socket(plain, server_hostname=HOST) as connection:
            yield connection

    def get(
        self, target: str, *, client: int = 1, headers: Mapping[str, str] | None = None
    ) -> tuple[HTTPResponse, bytes]:
        return self.send("GET", target, client=client, headers=headers)

    def send(
        self,
        method: str,
        target: str,
        *,
        body: str | bytes | Iterator[bytes] | None = None,  # an iterator is sent in chunks
        client: int = 1,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[HTTPResponse, bytes]:
        with self.connected(client=client) as tls:
            connection = HTTPConnection(HOST)
            connection.sock = tls
            with suppress(OSError):  # a proxy may respond before it has read the body
                connection.request(method, target, body=body, headers=headers or {})
            response = connection.getresponse()
            return response, response.read()

    def get_over_http(self, target: str) -> HTTPResponse:
        connection = HTTPConnection("127.0.0.1", self.http_port)
        connection.request("GET", target, headers={"Host": HOST})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a self-signed certificate and its key."""
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
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service with the settings of deploy/payments.env, and payments."""
    directory = tmp_path_factory.mktemp("upstream")
    values = {
        "ALLOWED_HOSTS": HOST,
        "PUBLIC_BASE_URL": f"https://{HOST}",
        "TRUST_PROXY": "true",
        "ACCESS_LOG": "true",
        "METRICS": "true",
        "RUNTIME_DIRECTORY": str(directory),
    }
    with fresh_database(directory) as url, Service(url, settings=values, log=directory / "log").serving() as service:
        service.create_demo_payments(COUNT)
        yield service


@pytest.fixture(scope="module")
def key(upstream: Service) -> str:
    return upstream.create_api_key(organization=SHOPS[0].id, mode="live")


@pytest.fixture
def sender(upstream: Service) -> dict[str, str]:
    """Return the headers of an import."""
    key = upstream.create_api_key(organization=SHOPS[0].id, scope=KeyScope.IMPORT)
    return {**LINES, "Authorization": f"Bearer {key}"}


Arguments = tuple[list[str], dict[str, str]]


def is_older_than_its_file(program: str) -> bool:
    """Return whether the guide changes the file for this version of the program."""
    name = program.partition("-")[0]
    done = subprocess.run([program, *VERSION_ARGUMENTS[name]], capture_output=True, text=True, check=True)
    version = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    assert version is not None
    return tuple(map(int, version[0].split("."))) < OLDEST[name]


def configuration(program: str) -> str:
    """Return the program's file in deploy/, for an old program with the changes of the guide's `sed` command."""
    name = program.partition("-")[0]
    file = ROOT / "deploy" / {"nginx": "nginx.conf", "caddy": "Caddyfile"}[name]
    if not is_older_than_its_file(program):
        return file.read_text()
    (expression,) = re.findall(rf"sed -i '([^']+)' /etc/{name}/", (ROOT / "deploy/README.md").read_text())
    return output_of(["sed", expression, file])


def nginx(proxy: Proxy, *, upstreams: list[int], files: tuple[Path, Path], directory: Path) -> Arguments:
    """Return a command, and variables, for the file with the test's ports, certificate, upstreams and log."""
    text = configuration(proxy.program)
    http2 = " http2" if is_older_than_its_file(proxy.program) else ""
    servers = " ".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=5s;" for port in upstreams)
    for original, replacement in (
        ("server 127.0.0.1:8000 max_fails=1 fail_timeout=5s;", servers),
        ("listen 80;", f"listen 127.0.0.1:{proxy.http_port};"),
        ("listen [::]:80;", ""),
        (f"listen 443 ssl{http2};", f"listen 127.0.0.1:{proxy.https_port} ssl{http2};"),
        (f"listen [::]:443 ssl{http2};", ""),
        ("/etc/ssl/certs/payments.pem", str(files[0])),
        ("/etc/ssl/private/payments.key", str(files[1])),
        ("/var/cache/nginx/payments", f"{directory}/cache"),
        ("/var/log/nginx/payments.log", str(proxy.log)),
        ("/var/log/nginx/payments-error.log", str(proxy.log)),
    ):
        assert original in text
        text = text.replace(original, replacement)
    (directory / "payments.conf").write_text(text)
    directories = "".join(f"{kind}_temp_path {directory}/{kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
    main = (
        f"{'user root;' if os.geteuid() == 0 else ''} daemon off; pid {directory}/pid; events {{}}"
        # Debian's nginx.conf enables gzip for all servers.
        f"http {{ gzip on; client_body_temp_path {directory}/body; {directories} include {directory}/payments.conf; }}"
    )
    (directory / "nginx.conf").write_text(main)
    return [proxy.program, "-e", str(proxy.log), "-c", str(directory / "nginx.conf")], {}


def caddy(proxy: Proxy, *, upstreams: list[int], files: tuple[Path, Path], directory: Path) -> Arguments:
    """Return a command, and variables, for the file with the test's ports and certificate."""
    environment = {
        "PAYMENTS_HOST": HOST,
        "PAYMENTS_UPSTREAMS": " ".join(f"127.0.0.1:{port}" for port in upstreams),
        **{f"XDG_{kind}_HOME": str(directory) for kind in ("CONFIG", "DATA")},
    }
    (directory / "Caddyfile").write_text(configuration(proxy.program))
    adapted = subprocess.run(
        [proxy.program, "adapt", "--config", directory / "Caddyfile"],
        env=os.environ | environment,
        capture_output=True,
        check=True,
    )
    assert b"warn" not in adapted.stderr.lower()
    loaded = json.loads(adapted.stdout)
    http = loaded["apps"]["http"]
    http |= {"http_port": proxy.http_port, "https_port": proxy.https_port}
    for server in http["servers"].values():
        server["listen"] = [
            {":80": f"127.0.0.1:{proxy.http_port}", ":443": f"127.0.0.1:{proxy.https_port}"}[port]
            for port in server["listen"]
        ]
    files_loaded = {"certificate": str(files[0]), "key": str(files[1])}
    loaded["apps"]["tls"] = {"certificates": {"load_files": [files_loaded]}}
    loaded["admin"] = {"disabled": True}
    (directory / "caddy.json").write_text(json.dumps(loaded))
    return [proxy.program, "run", "--config", str(directory / "caddy.json")], environment


ARGUMENTS: dict[str, Callable[..., Arguments]] = {"nginx": nginx, "caddy": caddy}


@contextmanager
def proxied(program: str, *, upstreams: list[int], files: tuple[Path, Path], directory: Path) -> Iterator[Proxy]:
    """Run a proxy in front of services on these ports, and yield it."""
    require(program)
    name = program.partition("-")[0]
    trusted = ssl.create_default_context(cafile=files[0])
    proxy = Proxy(program, name, free_port(), free_port(), directory / "log", trusted, PROGRAMS[program])
    command, environment = ARGUMENTS[name](proxy, upstreams=upstreams, files=files, directory=directory)
    with proxy.log.open("ab") as log:
        server = subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=log)
    try:
        wait_until_listening(server, proxy.https_port)
        yield proxy
    finally:
        server.terminate()
        assert server.wait(timeout=SECONDS_MAX) == 0


@pytest.fixture(scope="module", params=PROGRAMS)
def proxy(
    request: pytest.FixtureRequest,
    upstream: Service,
    certificate: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    """Return a proxy for the service and for another one that is down."""
    upstreams = [free_port(), upstream.port]
    directory = tmp_path_factory.mktemp(request.param)
    with proxied(request.param, upstreams=upstreams, files=certificate, directory=directory) as proxy:
        yield proxy


@pytest.fixture(scope="module", params=PROGRAMS)
def following(
    request: pytest.FixtureRequest, certificate: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    """Return a proxy for a service without PUBLIC_BASE_URL: its links have the host of the request."""
    directory = tmp_path_factory.mktemp(f"following-{request.param}")
    values = {"ALLOWED_HOSTS": HOST, "TRUST_PROXY": "true"}
    with (
        fresh_database(directory) as url,
        Service(url, settings=values, log=directory / "service.log").serving() as service,
        proxied(request.param, upstreams=[service.port], files=certificate, directory=directory) as proxy,
    ):
        yield proxy


def test_walk_through_the_proxy_uses_https_links(proxy: Proxy, key: str) -> None:
    pages: list[Any] = []
    target: str | None = "/v2/payments?limit=250"
    while target is not None:
        response, body = proxy.get(target, headers={"Authorization": f"Bearer {key}"})
        assert response.status == 200, body
        pages.append(msgspec.json.decode(body))
        href = pages[-1]["_links"].get("next", {}).get("href")
        target = href and "{0.path}?{0.query}".format(urlsplit(href))

    ids = [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]
    links = [link["href"] for page in pages for link in page["_links"].values()]
    assert len(ids) == len(set(ids)) > 0
    assert len(pages) > 1
    assert {urlsplit(link)[:2] for link in links} == {("https", HOST)}


def test_links_contain_the_port_of_the_proxy(following: Proxy) -> None:
    """A browser's Origin header contains a non-standard port too, and Django's CSRF check compares it with the host."""
    address = f"{HOST}:{following.https_port}"

    response, body = following.get("/", headers={"Host": address})

    assert response.status == 200, body
    links = {link["href"] for link in msgspec.json.decode(body)["_links"].values()}
    assert {urlsplit(link)[:2] for link in links} == {("https", address)}


@pytest.mark.parametrize(
    ("head", "statuses"),
    [
        # Without a host, nginx sends its server_name. Caddy has no site for it, and returns an empty page.
        ("GET / HTTP/1.0\r\n", {"nginx": 200, "caddy": 200}),
        (f"GET / HTTP/1.0\r\nX-Forwarded-Host: {OTHER_HOST}\r\n", {"nginx": 200, "caddy": 200}),
        ("GET / HTTP/1.1\r\n", {"nginx": 400, "caddy": 400}),
        (f"GET / HTTP/1.1\r\nHost: {HOST}\r\nHost: {OTHER_HOST}\r\n", {"nginx": 400, "caddy": 400}),
        (f"GET / HTTP/1.1\r\nHost: {OTHER_HOST}\r\nHost: {HOST}\r\n", {"nginx": 400, "caddy": 400}),
        (f"GET / HTTP/1.1\r\nHost: {OTHER_HOST}\r\n", {"nginx": 400, "caddy": 200}),
        (f"GET https://{HOST}/ HTTP/1.1\r\nHost: {OTHER_HOST}\r\n", {"nginx": 400, "caddy": 200}),
        (f"GET https://{OTHER_HOST}/ HTTP/1.1\r\nHost: {HOST}\r\n", {"nginx": 200, "caddy": 200}),
    ],
)
def test_links_never_contain_another_host(following: Proxy, head: str, statuses: dict[str, int]) -> None:
    with following.connected() as connection:
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        with closing(HTTPResponse(connection)) as response:
            response.begin()
            body = response.read()

    assert response.status == statuses[following.name], body
    assert OTHER_HOST not in f"{response.headers}{body!r}"


def test_proxy_skips_a_service_that_is_down(proxy: Proxy) -> None:
    statuses = [proxy.get("/healthz")[0].status for _ in range(10)]

    assert statuses == [200] * 10


@pytest.mark.parametrize("target", ["/metrics", "/metrics?a=b", "/%6detrics", "/m%65trics"])
def test_metrics_are_blocked(proxy: Proxy, target: str) -> None:
    response, _ = proxy.get(target)

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
def test_forwarded_headers_of_clients_are_ignored(proxy: Proxy, headers: dict[str, str]) -> None:
    """If the service used such a header, it would redirect or refuse the request."""
    response, _ = proxy.get("/admin/login/", headers=headers)

    assert response.status == 200


@pytest.mark.parametrize(("header", "first_client"), [("X-Forwarded-For", 10), ("X_Forwarded_For", 20)])
def test_login_attempts_are_counted_by_client_address(proxy: Proxy, header: str, first_client: int) -> None:
    page, body = proxy.get("/admin/login/")
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', body.decode())
    assert token is not None
    fields = urlencode({"csrfmiddlewaretoken": token[1], "username": "nobody"})  # without a password: nothing is hashed
    cookie = page.headers["Set-Cookie"].partition(";")[0]

    def attempt(client: int, *, forged: str) -> int:
        headers = {
            header: forged,
            "Cookie": cookie,
            "Origin": f"https://{HOST}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return proxy.send("POST", "/admin/login/", body=fields, client=client, headers=headers)[0].status

    allowed = ACCOUNT_ATTEMPTS.events_max
    forging = [attempt(first_client, forged=f"192.0.2.{n}") for n in range(allowed + 1)]
    honest = attempt(first_client + 1, forged="192.0.2.0")

    assert forging == [200] * allowed + [429]
    assert honest == 200


@pytest.mark.parametrize("proxy", ["nginx", "nginx-current"], indirect=True)  # Caddy has no limit of requests at a time
def test_client_with_too_many_requests_at_once_gets_a_429(proxy: Proxy, key: str) -> None:
    head = f"POST /admin/login/ HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {key}\r\nContent-Length: 9\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(REQUESTS_OF_A_KEY_MAX):
            stack.enter_context(proxy.connected(client=40)).sendall(head.encode())  # without its body
        refused, body = wait_until_refused(proxy, key)
        other_client = proxy.get("/v2/payments", client=41, headers={"Authorization": "Bearer another"})[0].status

    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert json.loads(body)["status"] == 429
    assert other_client == 401


def wait_until_refused(proxy: Proxy, key: str) -> tuple[HTTPResponse, bytes]:
    """Return the first response that is not the service's: nginx counts a request when it has read its headers."""

    def refused() -> tuple[HTTPResponse, bytes] | None:
        response, body = proxy.get("/v2/payments", client=41, headers={"Authorization": f"Bearer {key}"})
        return (response, body) if response.status != 200 else None

    result = wait_until(refused)
    assert result is not None
    return result


def test_slow_body_reaches_the_service_complete(proxy: Proxy) -> None:
    body = b"username=nobody&password=none"
    head = (
        f"POST /admin/login/?slowly HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with proxy.connected(client=30) as connection:
        connection.sendall(head.encode() + body[:5])
        time.sleep(SLOW_SECONDS)
        connection.sendall(body[5:])
        response = HTTPResponse(connection)
        response.begin()

    assert response.status == 403  # the CSRF token is missing: the service has read the form


def test_incomplete_request_does_not_reach_the_service(proxy: Proxy, upstream: Service) -> None:
    assert upstream.log is not None
    with proxy.connected() as connection:
        connection.sendall(f"POST /unfinished HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 100\r\n\r\n12345".encode())
        time.sleep(SLOW_SECONDS)

    assert "/unfinished" not in upstream.log.read_text()


def test_too_large_body_is_refused(proxy: Proxy) -> None:
    length = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1
    with proxy.connected() as connection:
        connection.sendall(f"POST /admin/login/ HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {length}\r\n\r\n".encode())
        connection.sendall(b"a" * length)
        response = HTTPResponse(connection)
        response.begin()

    assert response.status in {413, 502}  # Caddy 2.6 returns 502


def body_of_an_import(length: int, payment_id: str) -> bytes:
    return b"\n" + line(id=payment_id, organizationId=str(SHOPS[0].id)).rjust(length - 1, b"\n")


def in_chunks(body: bytes) -> Iterator[bytes]:
    return (body[begin : begin + 2**16] for begin in range(0, len(body), 2**16))


@pytest.mark.parametrize("divide", [bytes, in_chunks])
@pytest.mark.parametrize("length", [1000, BYTES_MAX])
def test_import_reaches_the_service(proxy: Proxy, sender: dict[str, str], divide: Any, length: int) -> None:
    body = body_of_an_import(length, f"pt_{uuid4().hex}")

    response, content = proxy.send("POST", IMPORTS, body=divide(body), headers=sender)

    assert (response.status, json.loads(content)["written"]) == (200, 1)


@pytest.mark.parametrize("divide", [bytes, in_chunks])
def test_longer_import_writes_nothing(proxy: Proxy, upstream: Service, sender: dict[str, str], divide: Any) -> None:
    """The end of the body is blank, so that its start would be a valid import."""
    payment = f"pt_{uuid4().hex}"
    body = body_of_an_import(1000, payment).ljust(2 * BYTES_MAX, b"\n")

    response, _ = proxy.send("POST", IMPORTS, body=divide(body), headers=sender)

    assert response.status in {413, 502}  # Caddy 2.6 returns 502
    assert upstream.exported(id=payment) == ""


@pytest.mark.parametrize("path", ["/v2/payments", f"{IMPORTS}/", f"{IMPORTS}x", "/admin/login/"])
def test_bodies_of_other_paths_are_shorter(proxy: Proxy, sender: dict[str, str], path: str) -> None:
    """Caddy passes on the response of the service if it arrives first."""
    body = b"x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)

    def is_refused() -> bool:
        response, _ = proxy.send("POST", path, body=body, headers=sender)
        return response.status in {413, 502}

    wait_until(is_refused)


def test_client_of_an_import_may_wait_for_a_100(proxy: Proxy, sender: dict[str, str]) -> None:
    body = body_of_an_import(1000, f"pt_{uuid4().hex}")
    fields = "".join(f"{name}: {value}\r\n" for name, value in sender.items())
    head = f"POST {IMPORTS} HTTP/1.1\r\nHost: {HOST}\r\n{fields}Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
    with proxy.connected() as connection:
        connection.sendall(head.encode())
        interim = connection.recv(2**16)
        connection.sendall(body)
        with closing(HTTPResponse(connection)) as response:
            response.begin()

    assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert response.status == 200


@pytest.mark.parametrize(("headers", "status"), [({"Authorization": "Bearer x"}, 401), ({"Content-Type": "x/y"}, 415)])
@pytest.mark.parametrize("length", [100_000, BYTES_MAX])
def test_refusal_of_a_long_import_reaches_the_client(
    proxy: Proxy, sender: dict[str, str], headers: dict[str, str], status: int, length: int
) -> None:
    responses = [proxy.send("POST", IMPORTS, body=b"\n" * length, headers=sender | headers) for _ in range(5)]

    assert [json.loads(body)["status"] for _, body in responses] == [status] * 5


def test_slow_import_delays_no_other_one(proxy: Proxy, sender: dict[str, str]) -> None:
    """It reaches the service when its body is complete."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in sender.items())
    head = f"POST {IMPORTS} HTTP/1.1\r\nHost: {HOST}\r\n{fields}Content-Length: 1000\r\n\r\n"
    with proxy.connected() as slow:
        slow.sendall(head.encode() + b"\n")
        time.sleep(SLOW_SECONDS)
        other, _ = proxy.send("POST", IMPORTS, body=b"\n", headers=sender)
        slow.sendall(b"\n" * 999)
        with closing(HTTPResponse(slow)) as response:
            response.begin()

    assert (other.status, response.status) == (200, 200)


def test_http_redirects_pages_and_refuses_keys(proxy: Proxy) -> None:
    page = proxy.get_over_http("/docs/")
    api = proxy.get_over_http("/v2/payments")

    assert (page.status, page.getheader("Location")) == (308, f"https://{HOST}/docs/")
    assert (api.status, api.getheader("Location")) == (403, None)


COMPRESSED_PATHS = {
    "/docs/": "text/html",
    "/docs/reference/": "text/html",
    "/docs/reference.md": "text/markdown",
    "/docs/openapi.json": "application/vnd.oai.openapi+json",
    "/static/admin/css/base.css": "text/css",
    "/static/admin/js/core.js": "text/javascript",
    "/static/admin/img/calendar-icons.svg": "image/svg+xml",
}


@pytest.mark.parametrize("path", COMPRESSED_PATHS)
def test_public_pages_are_compressed(proxy: Proxy, path: str) -> None:
    plain, content = proxy.get(path)
    response, compressed = proxy.get(path, headers={"Accept-Encoding": "gzip"})

    assert response.getheader("Content-Encoding") == "gzip"
    assert response.getheader("Content-Type", "").startswith(COMPRESSED_PATHS[path])
    assert "Accept-Encoding" in response.getheader("Vary", "")
    assert gzip.decompress(compressed) == content
    assert len(compressed) < len(content)
    assert plain.getheader("Content-Encoding") is None


@pytest.mark.parametrize("path", ["/docs/", "/docs/openapi.json"])
def test_nginx_responds_with_cached_documentation(proxy: Proxy, path: str) -> None:
    """The service gives each of its responses another ID."""
    ids = [proxy.get(f"{path}?number={number}")[0].getheader("X-Request-ID") for number in range(3)]

    assert len(set(ids)) == (1 if proxy.name == "nginx" else 3)


def test_style_sheets_of_a_page_are_kept_and_compressed_once(proxy: Proxy) -> None:
    """The service compresses these files, and the proxy passes them on."""
    _, page = proxy.get("/docs/")
    links = re.findall(r"/static/[^\"]+\.css", page.decode())

    responses = [proxy.get(link, headers={"Accept-Encoding": "gzip, zstd"}) for link in links]

    assert len(responses) > 1
    assert {response.getheader("Content-Encoding") for response, _ in responses} == {"gzip"}
    assert all("immutable" in response.getheader("Cache-Control", "") for response, _ in responses)
    assert all(gzip.decompress(content) for _, content in responses)


@pytest.mark.parametrize(
    "path", ["/admin/login/", "/admin/login/?next=/v2/payments", "/admin/", "/healthz", "/", "/v2x"]
)
def test_other_responses_are_not_compressed(proxy: Proxy, path: str) -> None:
    """Otherwise the sizes of responses to chosen searches could reveal what else a page contains."""
    response, body = proxy.get(path, headers={"Accept-Encoding": "gzip, zstd"})

    assert response.getheader("Content-Encoding") is None
    assert ("/login/" in path) == (b"csrfmiddlewaretoken" in body)


def test_responses_of_the_api_are_compressed(proxy: Proxy, key: str) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    plain, content = proxy.get("/v2/payments?limit=250", headers=headers)
    response, compressed = proxy.get("/v2/payments?limit=250", headers={**headers, "Accept-Encoding": "gzip"})

    assert (plain.getheader("Content-Encoding"), plain.getheader("Content-Length")) == (None, str(len(content)))
    assert response.getheader("Content-Encoding") == "gzip"
    assert response.getheader("Content-Type") == "application/hal+json"
    assert gzip.decompress(compressed) == content
    assert len(compressed) * 8 < len(content)
    vary = {name.strip() for line in response.headers.get_all("Vary", []) for name in line.split(",")}
    assert vary == {"Accept", "Authorization", "Accept-Encoding"}


@pytest.mark.parametrize("encodings", ["gzip", "gzip, zstd", "identity"])
def test_etag_of_a_compressed_response_gets_a_304(proxy: Proxy, upstream: Service, key: str, encodings: str) -> None:
    headers = {"Authorization": f"Bearer {key}", "Accept-Encoding": encodings}
    first, body = proxy.get("/v2/payments?limit=250", headers=headers)
    headers["If-None-Match"] = first.getheader("ETag", "")

    second, _ = proxy.get("/v2/payments?limit=250", headers=headers)
    older = line(id=f"pt_{uuid4().hex}", organizationId=str(SHOPS[0].id), createdAt="2001-01-01T00:00:00.000")
    upstream.import_records([older])
    third, empty = proxy.get("/v2/payments?limit=250", headers=headers)

    best = {"gzip": "gzip", "identity": None, "gzip, zstd": {"nginx": "gzip", "caddy": "zstd"}[proxy.name]}[encodings]
    assert (first.status, first.getheader("Content-Encoding"), body != b"") == (200, best, True)
    assert (second.status, third.status, empty) == (304, 304, b"")


def test_aborted_requests_do_not_affect_others(proxy: Proxy) -> None:
    for _ in range(3):
        with proxy.connected() as connection:
            connection.sendall(
                f"POST /admin/login/ HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 100\r\n\r\n12345".encode()
            )

    statuses = [proxy.get("/healthz")[0].status for _ in range(10)]

    assert statuses == [200] * 10


@pytest.mark.parametrize("program", PROGRAMS)
def test_query_strings_are_not_logged_during_an_outage(
    program: str, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    with proxied(program, upstreams=[free_port()], files=certificate, directory=tmp_path) as proxy:
        response, _ = proxy.get("/v2/payments?metadata[order]=canary")
        proxy.get("/metrics?canary")

    assert response.status in {502, 503}
    assert "canary" not in proxy.log.read_text()


@pytest.mark.parametrize("program", ["nginx", "nginx-current"])
def test_nginx_accepts_its_file_without_a_warning(program: str, certificate: tuple[Path, Path], tmp_path: Path) -> None:
    with proxied(program, upstreams=[free_port()], files=certificate, directory=tmp_path) as proxy:
        command = [program, "-e", str(proxy.log), "-c", str(tmp_path / "nginx.conf"), "-t"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "test is successful" in done.stderr
    assert "[warn]" not in done.stderr + proxy.log.read_text()


@pytest.mark.parametrize("program", ["caddy", "caddy-current"])
def test_caddy_accepts_its_file_as_formatted(program: str, tmp_path: Path) -> None:
    require(program)
    file = tmp_path / "Caddyfile"
    file.write_text(configuration(program))
    variables = os.environ | {f"XDG_{kind}_HOME": str(tmp_path) for kind in ("CONFIG", "DATA")}

    valid = subprocess.run([program, "validate", "--config", file], env=variables, capture_output=True, check=False)
    subprocess.run([program, "fmt", "--overwrite", file], check=True, capture_output=True)

    assert valid.returncode == 0, valid.stderr
    assert file.read_text() == configuration(program)
