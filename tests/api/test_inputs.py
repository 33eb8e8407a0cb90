"""Whatever is sent, the answer is the contract's: to a corpus of requests, to made-up ones, to HTTP that is none."""

import re
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote_from_bytes, unquote_to_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moneyed import CURRENCIES

from payments.service.handler import Handler
from tests.support.connecting import connected_to
from tests.support.contract import assert_kept
from tests.support.corpus import OURS, SUBJECTS, Case, cases, load, read
from tests.support.exchange import RESPONSE_SECONDS_MAX, Request, Response, call, exchange, send
from tests.support.processes import ROOT
from tests.support.scale import examples, report, times
from tests.support.service import Service

# What may stand in an address (RFC 3986).
ADDRESS = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*")

Ask = Callable[[Request], Response]
Wrong = Callable[[Ask], Ask]


@dataclass
class Door:
    """A way to the API, and the key to it."""

    ask: Ask
    host: str
    key: str
    tally: Counter[str]
    is_served: bool = False

    def answer(self, line: str, *headers: str, without: tuple[str, ...] = (), body: str = "") -> Response:
        """Ask with the host and the key, unless other ones are given."""
        self.tally["over HTTP" if self.is_served else "to the application"] += 1
        given = [(name, value.strip(" ")) for name, _, value in (text.partition(":") for text in headers)]
        replaced = {name.lower() for name in [*without, *(name for name, _ in given)]}
        usual = [("Host", self.host), ("Authorization", f"Bearer {self.key}")]
        kept = [(name, value) for name, value in usual if name.lower() not in replaced]
        return self.ask(Request(line, (*kept, *given), body))

    def assert_answered(self, case: Case) -> None:
        answer = self.answer(case.send, *case.headers, without=case.without, body=case.body)
        expected = case.served if self.is_served else case.expected
        expected.assert_met(answer, method=case.send.split()[0].upper())

    def is_refused_unread(self, answer: Response, text: str) -> bool:
        """Tell whether the server itself refused what can be no part of an address."""
        return self.is_served and (answer.status, answer.body) == (400, b"") and not ADDRESS.fullmatch(text)


@pytest.fixture(scope="module")
def tally() -> Iterator[Counter[str]]:
    """How many requests were sent."""
    counted: Counter[str] = Counter()
    yield counted
    report(", ".join(f"{number} requests {where}" for where, number in counted.items()))


@pytest.fixture
def inside(transactional_db: None, tally: Counter[str], monkeypatch: pytest.MonkeyPatch) -> Door:
    """The application in this process."""
    monkeypatch.setattr("django.conf.settings.BAD_KEY_LIMIT", None)  # among them are many bad keys
    return Door(partial(call, Handler()), "testserver", load(), tally)


@pytest.fixture(scope="module")
def outside(service: Service, tally: Counter[str]) -> Door:
    """The service, over HTTP."""
    with connected_to(service.database_url):
        key = load()
    return Door(partial(send, service.port), f"127.0.0.1:{service.port}", key, tally, is_served=True)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_each_case_of_the_corpus_is_answered_as_the_contract_says(
    inside: Door, subtests: pytest.Subtests, subject: str
) -> None:
    for item in cases(subject, host=inside.host, key=inside.key):
        with subtests.test(item.name):
            inside.assert_answered(item)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_it_is_answered_so_over_http_too(outside: Door, subtests: pytest.Subtests, subject: str) -> None:
    for item in cases(subject, host=outside.host, key=outside.key):
        with subtests.test(item.name):
            outside.assert_answered(item)


# What a wrong service would make of a request.


def asking(line: str) -> Wrong:
    """Answer as if something else had been asked."""
    return lambda ask: lambda request: ask(replace(request, line=line))


def changing(change: Callable[[Response], Response]) -> Wrong:
    return lambda ask: lambda request: change(ask(request))


def rewriting(old: bytes, new: bytes) -> Wrong:
    return changing(lambda answer: replace(answer, body=answer.body.replace(old, new)))


def without(name: str) -> Wrong:
    return changing(lambda answer: replace(answer, headers=tuple(item for item in answer.headers if item[0] != name)))


def having(name: str, value: str) -> Wrong:
    added = changing(lambda answer: replace(answer, headers=(*answer.headers, (name, value))))
    return lambda ask: added(without(name)(ask))


INVALID = 'Bearer realm="payments", error="invalid_token"'
PAGE = Response(404, (("Content-Type", "text/html"),), b"<h1>Not Found</h1>")

GOOD = {"send": "GET /v2/payments", "status": 200}
MISTYPED = {"send": "GET /v2/payments?statsu=open", "status": 400, "field": "statsu"}
NO_KEY = {"send": "GET /v2/payments", "without": ["Authorization"], "status": 401}
TAGS = {"send": "GET /v2/payments?%3Cb%3E=1", "status": 400}
TOO_MANY = {"send": "GET /v2/payments?limit=251", "status": 400, "field": "limit"}

WRONG: dict[str, tuple[dict[str, Any], Wrong]] = {
    "an error as a page": ({"send": "GET /v2/refunds", "status": 404}, changing(lambda _answer: PAGE)),
    "a failure": (MISTYPED, changing(lambda answer: replace(answer, status=500))),
    "an echo in the words": (MISTYPED, rewriting(b"this name", b"the name statsu")),
    "an echo beside them": (MISTYPED, rewriting(b'"_links"', b'"query":"statsu=open","_links"')),
    "an echo in a header": (MISTYPED, having("X-Query", "statsu=open")),
    "an echo of what is no plain name": (TAGS, rewriting(b'"_links"', b'"field":"<b>","_links"')),
    "a fault without its parameter": (MISTYPED, rewriting(b'"field":"statsu",', b"")),
    "no challenge": (NO_KEY, without("WWW-Authenticate")),
    "a missing key told as a bad one": (NO_KEY, having("WWW-Authenticate", INVALID)),
    "no word of what is allowed": ({"send": "POST /v2/payments", "status": 405}, without("Allow")),
    "a redirect": ({"send": "GET /v2/payments/", "status": 404}, having("Location", "/v2/payments")),
    "a cookie": (GOOD, having("Set-Cookie", "sessionid=1")),
    "nothing for caches": (GOOD, without("Cache-Control")),
    "leave for any cache": (GOOD, having("Cache-Control", "public")),
    "no ETag": (GOOD, without("ETag")),
    "links to any host": (GOOD, rewriting(b"testserver", b"elsewhere.example")),
    "an over-refusal": (GOOD, asking("GET /v2/payments?x=1")),
    "a mistyped filter that lists everything": (MISTYPED, asking("GET /v2/payments")),
    "a size that is clamped": (TOO_MANY, asking("GET /v2/payments?limit=250")),
    "a size that is overlooked": (
        {"send": "GET /v2/payments?limit=1", "status": 200, "page": "limit=1&from=pt_Newest"},
        asking("GET /v2/payments"),
    ),
    "a start that is overlooked": (
        {"send": "GET /v2/payments?from=pt_Oldest", "status": 200, "page": "limit=20&from=pt_Oldest"},
        asking("GET /v2/payments"),
    ),
    "somebody else's payment": (GOOD, rewriting(b"pt_Newest", b"pt_Foreign")),
}


def test_a_wrong_answer_is_caught(inside: Door, subtests: pytest.Subtests) -> None:
    for name, (item, wrong) in WRONG.items():
        asked = read(item, host=inside.host)

        with subtests.test(name):
            inside.assert_answered(asked)
            with pytest.raises(AssertionError):
                replace(inside, ask=wrong(inside.ask)).assert_answered(asked)


# Made-up requests: words that mean something here, and bytes and text that mean nothing, in any order.

PATH_WORDS = "payments pt_Newest pt_Foreign / // . .. %2e %2F %5C ; %00 %0A % +"
QUERY_WORDS = """
    limit from limit=5 from=pt_Middle = & & ; + % [] %00 %0A %20 %3D %26 0 1 5 250 251 - %35 %D9%A5
    pt_Newest pt_Oldest pt_Foreign pt_Test pt%5FMiddle
    sort=asc sort status=open,succeeded status currency=EUR amount[gte]=1 amount[gte] createdAt[gte]=2026-01-02
    createdAt%5Blt%5D=2026-01-03T00:00:00Z paidAt[lt] 2026-02-30 metadata[zeta]=1 metadata[ ] %C3%A9 , open asc EUR
"""
HEADER_WORDS = r"""
    application/json application/hal+json */* text/html q= Q= 0 1 . , ; = " \ Bearer Basic live_ W/ "x" * bytes= - : @ /
    [ ] %
"""
encoded = st.binary(max_size=8).map(quote_from_bytes)
encoded_text = st.text(max_size=8).map(lambda text: quote_from_bytes(text.encode("utf-8", "surrogatepass")))
raw = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_characters="#?\x7f"), max_size=8)
raw_with_spaces = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=8)


def joined(words: str, *others: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.one_of(st.sampled_from(words.split()), *others), max_size=8).map("".join)


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

# Nothing that is sent changes anything, so the examples share what the test was given.
SHARED = [HealthCheck.function_scoped_fixture]
INSIDE = settings(max_examples=examples(300, long=12_000), suppress_health_check=SHARED)
OUTSIDE = settings(max_examples=examples(100, long=3_000), suppress_health_check=SHARED)


def assert_path_is_answered(door: Door, path: str) -> None:
    resources = {"/v2/payments", *(f"/v2/payments/{name}" for name in OURS)}
    is_there = unquote_to_bytes(f"/v2/{path}".encode("latin-1")).decode("latin-1") in resources

    answer = door.answer(f"GET /v2/{path}")

    if not door.is_refused_unread(answer, path):
        assert answer.status == (200 if is_there else 404)
        assert_kept(answer, method="GET", base=f"http://{door.host}")


MOMENTS = {"2026-01-02", "2026-01-03T00:00:00Z"}  # of those that QUERY_WORDS can be joined to
WORDS = {
    "limit": set(map(str, range(1, 251))),
    "from": set(OURS),
    "sort": {"asc", "desc"},
}
LISTED = {
    "status": {"open", "pending", "authorized", "succeeded", "failed", "canceled", "expired"},
    "sequenceType": {"oneoff", "first", "recurring"},
    "currency": set(CURRENCIES),
}


def is_right(name: str, value: str) -> bool:
    """Tell whether a parameter is one of the contract's (section 5), and its value such as it takes."""
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
    return field in {"createdAt", "paidAt"} and value in MOMENTS


def assert_query_is_answered(door: Door, query: str) -> None:
    text = query.encode("latin-1").decode(errors="surrogateescape")
    given = parse_qsl(text, keep_blank_values=True, errors="surrogateescape")
    parameters = dict(given)
    is_good = (
        len(parameters) == len(given)
        and all(is_right(name, value) for name, value in given)
        and sum(name.startswith("metadata[") for name in parameters) <= 5
        and ("currency" in parameters or not any(name.startswith("amount[") for name in parameters))
    )

    answer = door.answer(f"GET /v2/payments?{query}")

    if not door.is_refused_unread(answer, query):
        assert answer.status == (200 if is_good else 400)
        document = assert_kept(answer, method="GET", base=f"http://{door.host}")
        assert document.get("field") in {None, "metadata", *parameters}


def assert_header_is_answered(door: Door, name: str, value: str) -> None:
    answer = door.answer("GET /v2/payments", f"{name}: {value}")

    assert answer.status in STATUSES[name]
    assert_kept(answer, method="GET", base="" if name == "Host" else f"http://{door.host}")


@given(path=paths)
@INSIDE
def test_any_path_leads_to_a_payment_or_nowhere(inside: Door, path: str) -> None:
    assert_path_is_answered(inside, path)


@given(query=queries)
@INSIDE
def test_any_query_is_read_as_the_standard_library_reads_it(inside: Door, query: str) -> None:
    assert_query_is_answered(inside, query)


@given(name=st.sampled_from(list(STATUSES)), value=values)
@INSIDE
def test_any_header_is_answered_or_ignored(inside: Door, name: str, value: str) -> None:
    assert_header_is_answered(inside, name, value)


@given(path=paths)
@OUTSIDE
def test_so_does_any_path_over_http(outside: Door, path: str) -> None:
    assert_path_is_answered(outside, path)


@given(query=queries)
@OUTSIDE
def test_so_is_any_query_over_http(outside: Door, query: str) -> None:
    assert_query_is_answered(outside, query)


@given(name=st.sampled_from(list(STATUSES)), value=values)
@OUTSIDE
def test_so_is_any_header_over_http(outside: Door, name: str, value: str) -> None:
    assert_header_is_answered(outside, name, value)


# HTTP itself, broken: what comes of it (None: the server hangs up). An answer without a body is the server's own.

GET = b"GET /v2/payments HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

BROKEN: dict[str, tuple[bytes, set[int | None]]] = {
    "HTTP/0.9": (b"GET /v2/payments\r\n", {400}),
    "HTTP/1.0": (b"GET /v2/payments HTTP/1.0\r\n" + HOST + b"\r\n", {401}),
    "HTTP/1.0 without a host": (b"GET /v2/payments HTTP/1.0\r\n\r\n", {400}),
    "HTTP/1.2": (b"GET /v2/payments HTTP/1.2\r\n" + HOST + b"\r\n", {400}),
    "HTTP/3.0": (b"GET /v2/payments HTTP/3.0\r\n" + HOST + b"\r\n", {400}),
    "no version's number": (b"GET /v2/payments HTTP/x\r\n" + HOST + b"\r\n", {400}),
    "bare line feeds": ((GET + HOST + b"\r\n").replace(b"\r", b""), {400, 401}),
    "empty lines first": (b"\r\n\r\n" + GET + HOST + b"\r\n", {401}),
    "no method": (b"/v2/payments HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "no target": (b"GET HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "a method that is no token": (b"G(T /v2/payments HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "spaces in the target": (b"GET /v2/payments /x HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "a tab in the target": (b"GET /v2/payments\t HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "a fragment": (b"GET /v2/payments#x HTTP/1.1\r\n" + HOST + b"\r\n", {400, 401}),
    "an absolute target": (b"GET http://localhost/v2/payments HTTP/1.1\r\n" + HOST + b"\r\n", {401}),
    "another host's": (b"GET http://elsewhere.example/v2/payments HTTP/1.1\r\n" + HOST + b"\r\n", {400, 401}),
    "a target of 70,000 bytes": (b"GET /v2/" + b"a" * 70_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", {414, None}),
    "no host": (GET + b"\r\n", {400}),
    "two hosts": (GET + HOST + b"Host: elsewhere.example\r\n\r\n", {400}),
    "a header without a colon": (GET + HOST + b"X\r\n\r\n", {400}),
    "a header without a name": (GET + HOST + b": x\r\n\r\n", {400}),
    "a space before the colon": (GET + HOST + b"X : x\r\n\r\n", {400}),
    "a space before the name": (GET + b" " + HOST + b"\r\n", {400}),
    "a header's name that is no token": (GET + HOST + b"X(Y): x\r\n\r\n", {400}),
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
    "chunks that are none": (GET + HOST + CHUNKED + b"\r\nxyz\r\n", {400, 401}),
    "a chunk of a size beyond 64 bits": (GET + HOST + CHUNKED + b"\r\nfffffffffffffffff\r\n", {400, 401}),
    "a coding that nobody knows": (GET + HOST + b"Transfer-Encoding: x\r\n\r\n", {400, 501}),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), {400, None}),
    "a proxy's preface": (b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + GET + HOST + b"\r\n", {400}),
    "another protocol": (b"EHLO elsewhere.example\r\nMAIL FROM:<a@elsewhere.example>\r\n", {400, None}),
    "NULs": (bytes(1_000), {400, None}),
    "bytes": (bytes(range(256)) * 4, {400, None}),
}


@pytest.mark.parametrize(("sent", "statuses"), BROKEN.values(), ids=BROKEN)
def test_broken_http_is_refused_and_the_next_request_is_served(
    service: Service, outside: Door, sent: bytes, statuses: set[int | None]
) -> None:
    answer = exchange(service.port, sent)

    assert (answer and answer.status) in statuses
    if answer is not None and answer.body:
        assert_kept(answer, method="GET", base="" if answer.status == 400 else "http://localhost")
    assert outside.answer("GET /v2/payments").status == 200


def test_a_body_is_not_read_as_the_next_request(service: Service) -> None:
    hidden = b"GET /v2/hidden HTTP/1.1\r\n" + HOST + b"\r\n"
    length = f"Content-Length: {len(hidden)}\r\n\r\n".encode()
    last = b"GET /v2/payments HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"

    with socket.create_connection(("127.0.0.1", service.port), timeout=RESPONSE_SECONDS_MAX) as connection:
        connection.sendall(GET + HOST + length + hidden + last)
        answers = b"".join(iter(partial(connection.recv, 65_536), b""))

    assert re.findall(rb"HTTP/1.1 ([0-9]+)", answers) == [b"401", b"401"]


@pytest.mark.parametrize("seed", range(1, times(1, long=3) + 1))
def test_the_api_is_as_it_describes_itself(outside: Door, tmp_path: Path, seed: int) -> None:
    arguments = ["--checks", "all", "--seed", str(seed), "--max-examples", str(times(5, long=1_000))]
    authorization = ["--header", f"Authorization: Bearer {outside.key}"]

    done = subprocess.run(
        [
            *(ROOT / ".venv/bin/schemathesis", "--config-file", ROOT / "tests/schemathesis.toml", "run"),
            *(f"http://{outside.host}/docs/openapi.json", *authorization, *arguments),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    (generated,) = re.findall(r"([0-9]+) generated", done.stdout)
    outside.tally["by schemathesis"] += int(generated)
