"""The responses to a corpus of requests, to generated requests and to broken HTTP all meet the contract."""

import os
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, quote_from_bytes, unquote_to_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payments.models import KeyScope, Organization
from payments.models.choices import CURRENCIES
from tests.support.api import wsgi_application
from tests.support.commands import run_command
from tests.support.connecting import connected_to
from tests.support.contract import assert_meets_contract
from tests.support.corpus import SUBJECTS, VISIBLE_IDS, Case, read_cases, store_payments
from tests.support.exchange import (
    Request,
    Response,
    call_application,
    send_bytes,
    send_request,
)
from tests.support.processes import ROOT
from tests.support.scale import examples, report, times
from tests.support.service import Service
from tests.support.waiting import SECONDS_MAX

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("service")]

# The characters of an address (RFC 3986).
ADDRESS = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*")

IMPORTER = 9003  # as in tests/schemathesis_hooks.py

Send = Callable[[Request], Response]


@dataclass
class ApiUnderTest:
    """The API, in this process or over HTTP, and a key to it."""

    send: Send
    host: str
    key: str
    tally: Counter[str]
    is_over_http: bool = False

    def respond(self, line: str, *headers: str, without: tuple[str, ...] = (), body: str = "") -> Response:
        """Return the response to a request. `headers` replace the default Host and Authorization."""
        self.tally["over HTTP" if self.is_over_http else "to the application"] += 1
        own = [(name, value.strip(" ")) for name, _, value in (text.partition(":") for text in headers)]
        replaced = {name.lower() for name in [*without, *(name for name, _ in own)]}
        defaults = [("Host", self.host), ("Authorization", f"Bearer {self.key}")]
        remaining = [(name, value) for name, value in defaults if name.lower() not in replaced]
        return self.send(Request(line, (*remaining, *own), body))

    def assert_case(self, case: Case) -> None:
        response = self.respond(case.send, *case.headers, without=case.without, body=case.body)
        expected = case.expected_over_http if self.is_over_http else case.expected
        expected.assert_met(response, method=case.send.split()[0].upper())

    def is_refused_by_server(self, response: Response, text: str) -> bool:
        """Return whether the server itself refused the request, because `text` cannot be part of an address."""
        return self.is_over_http and (response.status, response.body) == (400, b"") and not ADDRESS.fullmatch(text)


@pytest.fixture(scope="module")
def tally() -> Iterator[Counter[str]]:
    """Count the requests."""
    counter: Counter[str] = Counter()
    yield counter
    report(", ".join(f"{number} requests {destination}" for destination, number in counter.items()))


@pytest.fixture
def in_process(transactional_db: None, tally: Counter[str]) -> ApiUnderTest:
    return ApiUnderTest(partial(call_application, wsgi_application()), "testserver", store_payments(), tally)


@pytest.fixture(scope="module")
def over_http(service: Service, tally: Counter[str]) -> ApiUnderTest:
    with connected_to(service.database_url):
        key = store_payments()
    send = partial(send_request, service.port)
    return ApiUnderTest(send, f"127.0.0.1:{service.port}", key, tally, is_over_http=True)


@pytest.mark.also("citus")
@pytest.mark.parametrize("subject", SUBJECTS)
def test_corpus_gets_the_responses_of_the_contract(
    in_process: ApiUnderTest, subtests: pytest.Subtests, subject: str
) -> None:
    for case in read_cases(subject, host=in_process.host, key=in_process.key):
        with subtests.test(case.name):
            in_process.assert_case(case)


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.parametrize("subject", SUBJECTS)
def test_corpus_gets_the_responses_of_the_contract_over_http(
    over_http: ApiUnderTest, subtests: pytest.Subtests, subject: str
) -> None:
    for case in read_cases(subject, host=over_http.host, key=over_http.key):
        with subtests.test(case.name):
            over_http.assert_case(case)


# Generated requests: meaningful words, random bytes and random text, in any order.

PATH_WORDS = "payments imports pt_Newest pt_Foreign / // . .. %2e %2F %5C ; %00 %0A % +"
QUERY_WORDS = """
    limit from limit=5 from=pt_Middle = & & ; + % [] %00 %0A %20 %3D %26 0 1 5 250 251 - %35 %D9%A5
    pt_Newest pt_Oldest pt_Foreign pt_Test pt%5FMiddle
    sort=asc sort status=open,succeeded status status[]=open status%5B0%5D=succeeded currency=EUR amount[gte]=1
    amount[gte] createdAt[gte]=2026-01-02 createdAt%5Blt%5D=2026-01-03T00:00:00Z paidAt[lt] 2026-02-30
    metadata[zeta]=1 metadata=zeta:1 metadata[ ] : %C3%A9 , open asc EUR
"""
HEADER_WORDS = r"""
    application/json application/hal+json */* text/html q= Q= 0 1 . , ; = " \ Bearer Basic live_ W/ "x" * bytes= - : @ /
    [ ] %
"""
encoded = st.binary(max_size=8).map(quote_from_bytes)
encoded_text = st.text(max_size=8).map(lambda text: quote_from_bytes(text.encode("utf-8", "surrogatepass")))
raw = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_characters="#?\x7f"), max_size=8)
raw_with_spaces = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=8)


def joined(words: str, *texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.one_of(st.sampled_from(words.split()), *texts), max_size=8).map("".join)


paths = joined(PATH_WORDS, encoded, encoded_text, raw)
queries = joined(QUERY_WORDS, encoded, encoded_text, raw)
values = joined(HEADER_WORDS, st.sampled_from(" \t"), raw_with_spaces).map(str.strip)

IGNORED = ["Content-Type", "Cookie", "Idempotency-Key", "Range", "Referer", "X-Forwarded-Host", "X-Request-Id"]
STATUSES = {
    "Accept": {200, 406},
    "Authorization": {401},
    "Host": {400},
    "If-None-Match": {200, 304},
    **{name: {200} for name in IGNORED},
}

# No request changes any data, so examples may share the fixtures.
SHARED = [HealthCheck.function_scoped_fixture]
IN_PROCESS = settings(max_examples=examples(300, long=12_000), suppress_health_check=SHARED)
OVER_HTTP = settings(max_examples=examples(100, long=3_000), suppress_health_check=SHARED)


def assert_response_to_path(api: ApiUnderTest, path: str) -> None:
    resources = {"/v2/payments", "/v2/payments/changes", *(f"/v2/payments/{payment_id}" for payment_id in VISIBLE_IDS)}
    exists = unquote_to_bytes(f"/v2/{path}".encode("latin-1")).decode("latin-1") in resources

    response = api.respond(f"GET /v2/{path}")

    if not api.is_refused_by_server(response, path):
        assert response.status == (200 if exists else 404)
        assert_meets_contract(response, method="GET", base=f"http://{api.host}")


TIMES = {"2026-01-02", "2026-01-03T00:00:00Z"}  # the valid times that joined QUERY_WORDS can contain
WORDS = {
    "limit": set(map(str, range(1, 251))),
    "from": set(VISIBLE_IDS),
    "sort": {"asc", "desc"},
}
LISTED = {
    "status": {"open", "pending", "authorized", "succeeded", "failed", "canceled", "expired"},
    "sequenceType": {"oneoff", "first", "recurring"},
    "currency": CURRENCIES,
}


LISTS = {*LISTED, "method", "customerId"}


def in_one_form(name: str, value: str) -> tuple[str, str]:
    """Return a parameter in the first of the forms that the contract (section 7) has for it."""
    key, colon, text = value.partition(":")
    if name in {"metadata", "metadata[]"} and key[:1] not in {"", "{", "[", '"'} and colon:
        return f"metadata[{key}]", text
    field, _, index = name.partition("[")
    return (field, value) if field in LISTS and re.fullmatch("[0-9]*]", index) else (name, value)


def is_valid(name: str, value: str) -> bool:
    """Return whether the contract (sections 5 and 7) has this parameter and allows the value."""
    field, _, bound = name.removesuffix("]").partition("[")
    if field == "metadata":
        return name.endswith("]") and all(re.fullmatch(r"[^\0\ud800-\udfff]{1,500}", text) for text in (bound, value))
    if name in WORDS:
        return value in WORDS[name]
    if name in LISTED:
        return set(value.split(",")) <= LISTED[name] and value.count(",") < 20
    if name != f"{field}[{bound}]" or bound not in {"gte", "gt", "lte", "lt"}:
        return False
    if field == "amount":
        return re.fullmatch(r"-?(0|[1-9][0-9]{0,12})(\.[0-9]{1,2})?", value, re.ASCII) is not None
    return field in {"createdAt", "paidAt"} and value in TIMES


def assert_response_to_query(api: ApiUnderTest, query: str) -> None:
    text = query.encode("latin-1").decode(errors="surrogateescape")
    sent = parse_qsl(text, keep_blank_values=True, errors="surrogateescape")
    pairs = [in_one_form(*pair) for pair in sent]
    parameters = dict(pairs)
    is_valid_query = (
        all(count == 1 or name in LISTS for name, count in Counter(name for name, _ in pairs).items())
        and all(is_valid(name, value) for name, value in pairs)
        and sum(name.startswith("metadata[") for name in parameters) <= 5
        and ("currency" in parameters or not any(name.startswith("amount[") for name in parameters))
    )

    response = api.respond(f"GET /v2/payments?{query}")

    if not api.is_refused_by_server(response, query):
        assert response.status == (200 if is_valid_query else 400)
        document = assert_meets_contract(response, method="GET", base=f"http://{api.host}")
        assert document.get("field") in {None, "metadata", *parameters, *dict(sent)}


def assert_response_to_header(api: ApiUnderTest, name: str, value: str) -> None:
    response = api.respond("GET /v2/payments", f"{name}: {value}")

    assert response.status in STATUSES[name]
    assert_meets_contract(response, method="GET", base="" if name == "Host" else f"http://{api.host}")


@given(path=paths)
@IN_PROCESS
def test_any_path_leads_to_a_resource_or_a_404(in_process: ApiUnderTest, path: str) -> None:
    assert_response_to_path(in_process, path)


@given(query=queries)
@IN_PROCESS
def test_any_query_is_parsed_as_by_the_standard_library(in_process: ApiUnderTest, query: str) -> None:
    assert_response_to_query(in_process, query)


@given(name=st.sampled_from(list(STATUSES)), value=values)
@IN_PROCESS
def test_any_header_gets_one_of_its_statuses(in_process: ApiUnderTest, name: str, value: str) -> None:
    assert_response_to_header(in_process, name, value)


@pytest.mark.processes
@given(path=paths)
@OVER_HTTP
def test_any_path_leads_to_a_resource_or_a_404_over_http(over_http: ApiUnderTest, path: str) -> None:
    assert_response_to_path(over_http, path)


@pytest.mark.processes
@given(query=queries)
@OVER_HTTP
def test_any_query_is_parsed_as_by_the_standard_library_over_http(over_http: ApiUnderTest, query: str) -> None:
    assert_response_to_query(over_http, query)


@pytest.mark.processes
@given(name=st.sampled_from(list(STATUSES)), value=values)
@OVER_HTTP
def test_any_header_gets_one_of_its_statuses_over_http(over_http: ApiUnderTest, name: str, value: str) -> None:
    assert_response_to_header(over_http, name, value)


# Broken HTTP and the possible statuses (None: the server closes the connection). The server's own responses have no
# body.

GET = b"GET /v2/payments HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

BROKEN: dict[str, tuple[bytes, set[int | None]]] = {
    "HTTP/0.9": (b"GET /v2/payments\r\n", {400}),
    "HTTP/1.0": (b"GET /v2/payments HTTP/1.0\r\n" + HOST + b"\r\n", {401}),
    "HTTP/1.0 without a host": (b"GET /v2/payments HTTP/1.0\r\n\r\n", {400}),
    "HTTP/1.2": (b"GET /v2/payments HTTP/1.2\r\n" + HOST + b"\r\n", {400}),
    "HTTP/3.0": (b"GET /v2/payments HTTP/3.0\r\n" + HOST + b"\r\n", {400}),
    "a version that is not a number": (b"GET /v2/payments HTTP/x\r\n" + HOST + b"\r\n", {400}),
    "bare line feeds": ((GET + HOST + b"\r\n").replace(b"\r", b""), {400, 401}),
    "empty lines first": (b"\r\n\r\n" + GET + HOST + b"\r\n", {401}),
    "no method": (b"/v2/payments HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "no target": (b"GET HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "a method that is not a token": (b"G(T /v2/payments HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "spaces in the target": (b"GET /v2/payments /x HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "a tab in the target": (b"GET /v2/payments\t HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "a fragment": (b"GET /v2/payments#x HTTP/1.1\r\n" + HOST + b"\r\n", {400, 401}),
    "an absolute target": (b"GET http://localhost/v2/payments HTTP/1.1\r\n" + HOST + b"\r\n", {401}),
    "an absolute target of another host": (
        b"GET http://elsewhere.example/v2/payments HTTP/1.1\r\n" + HOST + b"\r\n",
        {400, 401},
    ),
    "a target of 70,000 bytes": (b"GET /v2/" + b"a" * 70_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", {414, None}),
    "no host": (GET + b"\r\n", {400}),
    "two hosts": (GET + HOST + b"Host: elsewhere.example\r\n\r\n", {400}),
    "a header without a colon": (GET + HOST + b"X\r\n\r\n", {400}),
    "a header without a name": (GET + HOST + b": x\r\n\r\n", {400}),
    "a space before the colon": (GET + HOST + b"X : x\r\n\r\n", {400}),
    "a space before the name": (GET + b" " + HOST + b"\r\n", {400}),
    "a header name that is not a token": (GET + HOST + b"X(Y): x\r\n\r\n", {400}),
    "a header on two lines": (GET + HOST + b"X: x\r\n y\r\n\r\n", {400}),
    "NUL in a header": (GET + HOST + b"X: x\0y\r\n\r\n", {400}),
    "a control character in a header": (GET + HOST + b"X: x\x01y\r\n\r\n", {400}),
    "a carriage return in a header": (GET + HOST + b"X: x\ry\r\n\r\n", {400}),
    "a header of 2 MB": (GET + HOST + b"X: " + b"x" * 2_000_000 + b"\r\n\r\n", {431, None}),
    "1,000 headers": (GET + HOST + b"X: x\r\n" * 1_000 + b"\r\n", {431, None}),
    "two lengths": (GET + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", {400}),
    "a list of lengths": (GET + HOST + b"Content-Length: 1, 1\r\n\r\nx", {400}),
    "a negative length": (GET + HOST + b"Content-Length: -1\r\n\r\n", {400}),
    "a length with a sign": (GET + HOST + b"Content-Length: +1\r\n\r\nx", {400}),
    "a length in hexadecimal": (GET + HOST + b"Content-Length: 0x1\r\n\r\nx", {400}),
    "a length beyond 64 bits": (GET + HOST + b"Content-Length: 99999999999999999999\r\n\r\n", {400}),
    "a length and chunks": (GET + HOST + b"Content-Length: 1\r\n" + CHUNKED + b"\r\n0\r\n\r\n", {400, 401}),
    "malformed chunks": (GET + HOST + CHUNKED + b"\r\nxyz\r\n", {400, 401}),
    "a chunk of a size beyond 64 bits": (GET + HOST + CHUNKED + b"\r\nfffffffffffffffff\r\n", {400, 401}),
    "an unknown transfer coding": (GET + HOST + b"Transfer-Encoding: x\r\n\r\n", {400, 501}),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), {400, None}),
    "a proxy's preface": (b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + GET + HOST + b"\r\n", {400}),
    "another protocol": (b"EHLO elsewhere.example\r\nMAIL FROM:<a@elsewhere.example>\r\n", {400, None}),
    "NULs": (bytes(1_000), {400, None}),
    "bytes": (bytes(range(256)) * 4, {400, None}),
}


@pytest.mark.processes
@pytest.mark.parametrize(("request_bytes", "statuses"), BROKEN.values(), ids=BROKEN)
def test_broken_http_is_refused_and_the_next_request_is_served(
    service: Service, over_http: ApiUnderTest, request_bytes: bytes, statuses: set[int | None]
) -> None:
    response = send_bytes(service.port, request_bytes)

    assert (response and response.status) in statuses
    if response is not None and response.body:
        assert_meets_contract(response, method="GET", base="" if response.status == 400 else "http://localhost")
    assert over_http.respond("GET /v2/payments").status == 200


@pytest.mark.processes
def test_body_is_not_read_as_the_next_request(service: Service) -> None:
    hidden = b"GET /v2/hidden HTTP/1.1\r\n" + HOST + b"\r\n"
    length = f"Content-Length: {len(hidden)}\r\n\r\n".encode()
    last = b"GET /v2/payments HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"

    with socket.create_connection(("127.0.0.1", service.port), timeout=SECONDS_MAX) as connection:
        connection.sendall(GET + HOST + length + hidden + last)
        responses = b"".join(iter(partial(connection.recv, 65_536), b""))

    assert re.findall(rb"HTTP/1.1 ([0-9]+)", responses) == [b"401", b"401"]


def import_key(service: Service) -> str:
    with connected_to(service.database_url):
        Organization.objects.get_or_create(id=IMPORTER, name="Books")
    return service.create_api_key(organization=IMPORTER, mode="live", scope=KeyScope.IMPORT)


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.parametrize("seed", range(1, times(1, long=3) + 1))
@pytest.mark.parametrize("imports", [False, True], ids=["all", "imports"])
def test_responses_match_the_openapi_document(
    service: Service, over_http: ApiUnderTest, tmp_path: Path, seed: int, *, imports: bool
) -> None:
    """The key reads: imports get 403. Or it imports, and can write."""
    key = import_key(service) if imports else over_http.key
    arguments = ["--checks", "all", "--seed", str(seed), "--max-examples", str(times(5, long=1_000))]
    arguments += ["--include-operation-id", "importPayments"] if imports else []
    authorization = ["--header", f"Authorization: Bearer {key}"]

    result = run_command(
        [
            *(ROOT / ".venv/bin/schemathesis", "--config-file", ROOT / "tests/schemathesis.toml", "run"),
            *(f"http://{over_http.host}/docs/openapi.json", *authorization, *arguments),
        ],
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": str(ROOT / "tests/schemathesis_hooks.py")},
    )

    assert result.returncode == 0, result.stdout
    [generated] = re.findall(r"([0-9]+) generated", result.stdout)
    over_http.tally["by schemathesis"] += int(generated)
