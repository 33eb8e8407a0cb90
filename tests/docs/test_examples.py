"""The examples of the API's documentation work, and its reference is complete."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404
from django.test import RequestFactory
from markdown_it import MarkdownIt
from rest_framework.exceptions import APIException, AuthenticationFailed, MethodNotAllowed
from rest_framework.request import Request

from payments.access.authentication import InsufficientScope
from payments.api.base import PaymentsView
from payments.api.errors import (
    DETAILS,
    MALFORMED,
    NOT_ALLOWED,
    InvalidParameter,
    Problem,
    Unmigrated,
    problem_response,
    title,
)
from payments.api.imports import InvalidRecords, PaymentImports
from payments.api.openapi import COMMON_ERRORS, IMPORT_ERRORS, openapi_document
from payments.api.parameters import NAMES
from payments.api.views import PaymentList
from payments.listing.filters import FILTERS
from payments.models import KeyScope, Mode, SequenceType, Status
from payments.record import encode, record_time
from payments.service import error_pages
from tests.support.commands import output_of, run_command
from tests.support.contract import PAGE_KEYS, PAGE_LINKS, RULES
from tests.support.factories import NOON
from tests.support.lines import line
from tests.support.processes import ROOT
from tests.support.relay import Answer, ConnectionEnded, relayed
from tests.support.service import Service
from tests.support.tools import require
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("service")]

INDEX, SAMPLES, REFERENCE = (
    (ROOT / "docs/api" / f"{name}.md").read_text() for name in ("index", "samples", "reference")
)

EXAMPLE_URL = "https://pay.example"
ORGANIZATION, LARGE_ORGANIZATION = 5100, 5101
LARGE_COUNT = 600

# The programs wait so many seconds for changes.
INTERVAL = re.compile(r"((?:interval|INTERVAL|Interval) ?= ?)10\b")

# Parts that differ between responses, in addition to IDs and ETags.
VARYING = re.compile(r"^(date: |content-length: ).*$", re.MULTILINE)

# The command that runs a program of each language, and the suffix of its files.
COMMANDS = {
    "sh": (["sh"], "sh"),
    "python": ([sys.executable], "py"),
    "javascript": (["node"], "mjs"),
    "php": (["php"], "php"),
    "go": (["go", "run"], "go"),
}
NEEDED = {"sh": ["curl", "jq"], "javascript": ["node"], "php": ["php"], "go": ["go"]}


class Example(NamedTuple):
    """A code block, and the heading of its section."""

    section: str
    language: str
    text: str


def read_examples(document: str) -> Iterator[Example]:
    section = ""
    for before, token in pairwise(MarkdownIt("commonmark").parse(document)):
        if before.type == "heading_open":
            section = token.content
        if token.type == "fence":
            yield Example(section, token.info, token.content)


EXAMPLES = [*read_examples(INDEX), *read_examples(REFERENCE)]
RESPONSE_LANGUAGES = {"json", "http"}
REQUESTS_WITH_RESPONSE = [
    pytest.param(request, response, id=request.section)
    for request, response in pairwise(EXAMPLES)
    if request.language == "sh" and response.language in RESPONSE_LANGUAGES
]
REQUESTS_WITHOUT_RESPONSE = [
    pytest.param(request, id=request.section)
    for request, following in pairwise(EXAMPLES)
    if request.language == "sh" and following.language not in RESPONSE_LANGUAGES and "curl" in request.text
]
PROGRAMS = [example for example in read_examples(SAMPLES) if example.language in COMMANDS]
[OUTPUT] = [example.text for example in read_examples(SAMPLES) if example.language == "text"]

PARAMETERS = [
    pytest.param(program, id=program.language, marks=[pytest.mark.long] if program.language == "go" else [])
    for program in PROGRAMS
]
each_program = pytest.mark.parametrize("example", PARAMETERS)


class Shop(NamedTuple):
    """A service, and a key to the payments of an organization."""

    service: Service
    key: str
    import_key: str = ""

    def sh(self, example: str, **options: Any) -> str:
        """Run an example with the address of this service. Return the output with the address of the example."""
        command = ["sh", "-c", example.replace(EXAMPLE_URL, self.service.base_url)]
        return output_of(command, env=self.environment, **options).replace(self.service.base_url, EXAMPLE_URL)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PAYMENTS_KEY": self.key, "IMPORT_KEY": self.import_key}


@pytest.fixture(scope="module")
def shop(service: Service) -> Shop:
    """Import the payments of the examples."""
    service.import_records(map(encode, example_records()))
    key, import_key = (
        service.create_api_key(organization=ORGANIZATION, mode=mode, scope=scope)
        for mode, scope in ((Mode.LIVE, KeyScope.READ), (Mode.TEST, KeyScope.IMPORT))
    )
    return Shop(service, key, import_key)


def example_records() -> Iterator[Any]:
    for example in EXAMPLES:
        document = json.loads(example.text) if example.language == "json" else {}
        for record in [*document.get("_embedded", {}).get("payments", []), *([document] if "id" in document else [])]:
            yield {name: value for name, value in record.items() if name != "_links"}


def without_varying_parts(text: str) -> str:
    return VARYING.sub(r"\1...", re.sub(r"\b[0-9a-f]{32}\b", "...", text))


def parse_response(response: str) -> tuple[str, Any]:
    """Return the head of a response, empty if it is missing, and the document, with the keys of objects in order."""
    text = without_varying_parts(response.replace("\r", "")).strip()
    head, _, body = text.partition("\n\n") if text.startswith("HTTP") else ("", "", text)
    return head, json.loads(body, object_pairs_hook=list) if body else None


def test_every_example_is_tested() -> None:
    """A request may have a response."""
    requests = 2 * len(REQUESTS_WITH_RESPONSE) + len(REQUESTS_WITHOUT_RESPONSE)
    prompts_for_the_key = 1

    assert requests + prompts_for_the_key == len(EXAMPLES)


def test_every_sample_is_tested() -> None:
    """All programs have the same output."""
    assert len(PROGRAMS) + len([OUTPUT]) == len(list(read_examples(SAMPLES)))


@pytest.mark.needs("curl")
@pytest.mark.processes
@pytest.mark.parametrize(("example", "response"), REQUESTS_WITH_RESPONSE)
def test_request_gets_the_documented_response(example: Example, response: Example, shop: Shop) -> None:
    output = shop.sh(example.text)
    if "If-None-Match" in example.text:
        etag = re.findall(r'etag: "(.*)"', output)[0]
        output = shop.sh(re.sub("[0-9a-f]{32}-[0-9a-f]{32}", etag, example.text))

    assert parse_response(output) == parse_response(response.text)


@pytest.mark.needs("curl")
@pytest.mark.processes
@pytest.mark.parametrize("example", REQUESTS_WITHOUT_RESPONSE)
def test_request_without_a_documented_response_finds_one_payment(example: Example, shop: Shop) -> None:
    assert json.loads(shop.sh(example.text))["count"] == 1


@pytest.mark.processes
def test_prompt_for_the_key_exports_the_key(shop: Shop) -> None:
    [command] = [example.text for example in EXAMPLES if "read -r" in example.text]

    assert shop.sh(f"unset PAYMENTS_KEY; {command} printenv PAYMENTS_KEY", input=f"{shop.key}\n") == f"{shop.key}\n"


Program = Callable[..., list[str | Path]]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return a function that stores a program for the service at a URL, and returns the command that runs it."""

    def command(example: Example, *, url: str) -> list[str | Path]:
        for name in NEEDED.get(example.language, []):
            require(name)
        command, suffix = COMMANDS[example.language]
        path = tmp_path / f"payments.{suffix}"
        path.write_text(INTERVAL.sub(r"\g<1>1", example.text.replace(EXAMPLE_URL, url)))
        return [*command, path]

    return command


@pytest.mark.processes
@each_program
def test_program_prints_the_documented_output(example: Example, program: Program, shop: Shop) -> None:
    assert output_of(program(example, url=shop.service.base_url), env=shop.environment) == OUTPUT


@pytest.fixture(scope="module")
def large_shop(service: Service) -> Shop:
    lines = [
        line(
            id=f"pt_large{number:03}",
            organizationId=str(LARGE_ORGANIZATION),
            createdAt=record_time(NOON + timedelta(seconds=number)),
        )
        for number in range(LARGE_COUNT)
    ]
    service.import_records(lines)
    return Shop(service, service.create_api_key(organization=LARGE_ORGANIZATION, mode="live"))


@pytest.mark.processes
@each_program
def test_program_follows_next_to_the_end(example: Example, program: Program, large_shop: Shop) -> None:
    output = output_of(program(example, url=large_shop.service.base_url), env=large_shop.environment)

    assert re.findall(r"pt_\w+", output) == [f"pt_large{number:03}" for number in reversed(range(LARGE_COUNT))]


@pytest.mark.processes
@each_program
def test_program_with_an_invalid_key_fails_with_the_text_of_the_error(
    example: Example, program: Program, shop: Shop
) -> None:
    environment = shop._replace(key="nonsense").environment

    process = run_command(program(example, url=shop.service.base_url), env=environment)

    assert process.returncode != 0
    output = process.stdout + process.stderr
    assert "401" in output
    assert "This API key is invalid." in output


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.parametrize(
    ("status", "headers"),
    [(429, {"Retry-After": "1"}), (503, {"Retry-After": "1"}), (429, {}), (502, {}), (504, {})],
)
@each_program
def test_program_waits_as_long_as_the_service_asks(
    example: Example, status: int, headers: dict[str, str], program: Program, shop: Shop
) -> None:
    """The service refuses all requests of a second: a program that does not wait gives up."""
    until: list[float] = []

    def refuse(_path: str, answer: Answer) -> Answer:
        until.append(monotonic() + 0.9)
        return answer if monotonic() > until[0] else Answer(status, headers, b"{}")

    with relayed(shop.service.port, change=refuse) as url:
        assert output_of(program(example, url=url), env=shop.environment) == OUTPUT

    assert len(until) == 2


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.parametrize("example", [parameter for parameter in PARAMETERS if parameter.id != "sh"])
def test_program_repeats_a_request_without_a_response(example: Example, program: Program, shop: Shop) -> None:
    requests: list[int] = []

    def close_the_first(number: int) -> None:
        requests.append(number)
        if number == 1:
            raise ConnectionEnded

    with relayed(shop.service.port, before=close_the_first) as url:
        assert output_of(program(example, url=url), env=shop.environment) == OUTPUT

    assert requests == [1, 2]


@pytest.mark.processes
def test_shell_program_leaves_no_file_and_prints_no_payment_as_an_error(
    program: Program, large_shop: Shop, tmp_path: Path
) -> None:
    requests: list[int] = []

    def fail(_path: str, answer: Answer) -> Answer:
        return answer if len(requests) == 1 else Answer(404, {}, b"Something is wrong.")

    [example] = [each for each in PROGRAMS if each.language == "sh"]
    directory = tmp_path / "temporary"
    directory.mkdir()
    with relayed(large_shop.service.port, before=requests.append, change=fail) as url:
        done = run_command(program(example, url=url), env=large_shop.environment | {"TMPDIR": str(directory)})

    assert done.returncode == 1
    assert done.stdout.count("pt_large") == 250
    assert done.stderr.endswith("Something is wrong.")
    assert "pt_large" not in done.stderr
    assert list(directory.iterdir()) == []


@pytest.mark.extended
@pytest.mark.processes
@each_program
def test_program_gives_up_after_five_requests(example: Example, program: Program, shop: Shop) -> None:
    requests: list[int] = []
    seconds = 1 if example.language == "sh" else 0  # instead of 0, curl waits for 1, 2, 4 and 8 seconds
    refusal = Answer(503, {"Retry-After": str(seconds)}, b"The service is unavailable.")

    with relayed(shop.service.port, before=requests.append, change=lambda _path, _answer: refusal) as url:
        process = run_command(program(example, url=url), env=shop.environment)

    assert process.returncode != 0
    assert "The service is unavailable." in process.stdout + process.stderr
    assert requests == [1, 2, 3, 4, 5]


@pytest.mark.extended
@pytest.mark.processes
@each_program
def test_program_prints_changes_as_they_happen(example: Example, program: Program, shop: Shop) -> None:
    statuses: list[int] = []
    record = next(example_records())

    def observe(_path: str, answer: Answer) -> Answer:
        statuses.append(answer.status)
        return answer

    with relayed(shop.service.port, change=observe) as url:
        command = [*program(example, url=url), "changes"]
        with subprocess.Popen(command, env=shop.environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                wait_until(lambda: statuses[-2:] == [304, 304])
                shop.service.import_records([encode({**record, "status": Status.PENDING})])
                assert process.stdout is not None
                printed = process.stdout.readline()
                wait_until(lambda: statuses[-1] == 304)
            finally:
                process.terminate()
                shop.service.import_records([encode(record)])

    assert printed.split()[::4] == [record["id"], Status.PENDING]
    assert set(statuses) == {200, 304}


# The completeness of the reference.

WORDS = " ".join(REFERENCE.split())


def names_in_table(section: str) -> list[str]:
    """Return the names in the first column of a section's table."""
    text = re.split(r"^#+ ", REFERENCE.partition(f"# {section}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    cells = re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE)
    return [name for cell in cells for name in re.findall("`(.+?)`", cell)]


def test_reference_has_every_parameter() -> None:
    names = {
        *names_in_table("Parameters"),
        *names_in_table("Value filters"),
        *names_in_table("Range filters"),
        "metadata",
    }

    assert names == {*NAMES, *FILTERS}
    assert "`metadata[KEY]=VALUE`" in REFERENCE


@pytest.mark.parametrize("name", [name for name in RULES if name != "sort"])
def test_reference_has_the_rule_of_every_parameter_as_its_error_has_it(name: str) -> None:
    assert RULES[name] in WORDS


def test_reference_has_the_fields_of_a_record_in_their_order() -> None:
    schemas = openapi_document()["components"]["schemas"]
    record, details, money, links = (
        schemas[name]["properties"] for name in ("Payment", "Details", "Money", "RecordLinks")
    )
    fields = [name for name in record if name != "_links"]

    assert names_in_table("Payment record") == [*fields, *(f"_links.{name}" for name in links)]
    assert names_in_table("Details") == [*details]
    assert all(f"`{name}`" in REFERENCE for name in money)


@pytest.mark.parametrize("word", [*Status.values, *Mode.values, *SequenceType.values])
def test_reference_has_every_value_of_the_enumerations(word: str) -> None:
    assert f"`{word}`" in REFERENCE


def test_reference_has_the_fields_of_pages_and_errors_in_their_order() -> None:
    count, embedded, _ = PAGE_KEYS
    problem = Problem.__struct_encode_fields__[:-1]

    assert names_in_table("Page") == [count, f"{embedded}.payments", *(f"_links.{name}" for name in PAGE_LINKS)]
    assert names_in_table("Errors") == [*problem, "_links.documentation"]


class Error(NamedTuple):
    """The status, title and detail of an error, and whether the client can repeat the request."""

    status: str
    detail: str
    is_temporary: bool


def documented_errors() -> list[Error]:
    table = re.findall(r"^\| (\d{3} .*?) \| (.*?) \| (no|yes)\b.*? \| .* \|$", REFERENCE, flags=re.MULTILINE)
    return [Error(status, detail.strip("`"), repeat == "yes") for status, detail, repeat in table]


def built_errors() -> set[Error]:
    """Return the errors that the code can build, except for the details of 400 and the errors that developers see."""
    own = {kind for kind in subclasses(APIException) if kind.__module__.startswith("payments.")}
    kinds = {*DETAILS, *own} - {InsufficientScope, InvalidParameter, InvalidRecords, Unmigrated}
    exceptions = [
        AuthenticationFailed("This API key is invalid."),
        InvalidRecords([]),
        *map(InsufficientScope, KeyScope),
        *map(not_allowed, (PaymentList, PaymentImports)),
        *(kind() for kind in kinds),
    ]
    api_request = RequestFactory().get("/v2/payments")
    responses = [problem_response(exception, {"request": Request(api_request)}) for exception in exceptions]
    pages = [
        error_pages.bad_request(api_request, SuspiciousOperation()),
        error_pages.permission_denied(api_request, PermissionDenied()),
        error_pages.page_not_found(api_request, Http404()),
        error_pages.server_error(api_request),
        error_pages.unavailable(api_request),
    ]
    return {error_of(response) for response in (*responses, *pages)}


def not_allowed(view: type[PaymentsView]) -> MethodNotAllowed:
    with pytest.raises(MethodNotAllowed) as raised:
        view().http_method_not_allowed(RequestFactory().put("/v2/payments"))
    return raised.value


def subclasses(kind: type[APIException]) -> Iterator[type[APIException]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def error_of(response: Any) -> Error:
    problem = json.loads(response.content)
    assert problem["type"] == "about:blank"
    detail = "[texts](#invalid-requests)" if problem["status"] == HTTPStatus.BAD_REQUEST else problem["detail"]
    return Error(f"{problem['status']} {problem['title']}", detail, "Retry-After" in response.headers)


def test_reference_has_exactly_the_errors_that_the_code_can_build() -> None:
    errors = documented_errors()

    assert set(errors) == built_errors()
    assert errors == sorted(errors, key=lambda error: error.status)
    assert len(errors) == len(set(errors))


def test_openapi_has_only_documented_statuses() -> None:
    statuses = {HTTPStatus.NOT_FOUND, HTTPStatus.GONE, *COMMON_ERRORS, *IMPORT_ERRORS}

    assert {f"{status.value} {title(status)}" for status in statuses} == {error.status for error in documented_errors()}


@pytest.mark.parametrize("detail", ["Unknown parameter.", "Send at most 200 parameters.", NOT_ALLOWED, MALFORMED])
def test_reference_has_the_detail_of_an_invalid_request(detail: str) -> None:
    assert f"| `{detail}` |" in REFERENCE
