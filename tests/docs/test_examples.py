"""The examples of the API's documentation work, and its reference is complete."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt

from payments.api.errors import DETAILS, QueryTimeout, TooManyFilters, Unavailable, UnreadableRequest
from payments.api.openapi import LIST_ERRORS
from payments.api.parameters import NAMES
from payments.api.problems import Problem
from payments.listing.filters import FILTERS
from payments.models import Mode, SequenceType, Status
from payments.record import encode, json_schemas, record_time
from tests.support.commands import output_of, run_command
from tests.support.contract import PAGE_KEYS, PAGE_LINKS, RULES
from tests.support.factories import NOON
from tests.support.lines import line
from tests.support.processes import ROOT
from tests.support.service import Service
from tests.support.tools import require

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("service")]

INDEX, REFERENCE = ((ROOT / "docs/api" / name).read_text() for name in ("index.md", "reference.md"))

EXAMPLE_URL = "https://pay.example"
ORGANIZATION, LARGE_ORGANIZATION = 5100, 5101
LARGE_COUNT = 600

# Parts that differ between responses, in addition to IDs and ETags.
VARYING = re.compile(r"^(date: |content-length: ).*$", re.MULTILINE)

# The interpreter of each language, and the suffix of its files.
INTERPRETERS = {"python": (sys.executable, "py"), "javascript": ("node", "mjs"), "php": ("php", "php")}


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
PROGRAMS = [pytest.param(example, id=example.language) for example in EXAMPLES if example.language in INTERPRETERS]
[OUTPUT] = [example.text for example in EXAMPLES if example.language == "text"]


class Shop(NamedTuple):
    """A service, and a key to the payments of an organization."""

    service: Service
    key: str

    def sh(self, example: str, **options: Any) -> str:
        """Run an example with the address of this service. Return the output with the address of the example."""
        command = ["sh", "-c", example.replace(EXAMPLE_URL, self.service.base_url)]
        return output_of(command, env=self.environment, **options).replace(self.service.base_url, EXAMPLE_URL)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PAYMENTS_KEY": self.key}


@pytest.fixture(scope="module")
def shop(service: Service) -> Shop:
    """Import the payments of the examples."""
    service.import_records(map(encode, example_records()))
    return Shop(service, service.create_api_key(organization=ORGANIZATION, mode="live"))


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
    """A request may have a response. All programs have the same output."""
    requests = 2 * len(REQUESTS_WITH_RESPONSE) + len(REQUESTS_WITHOUT_RESPONSE)
    programs = len(PROGRAMS) + len([OUTPUT])
    prompts_for_the_key = 1

    assert requests + programs + prompts_for_the_key == len(EXAMPLES)


@pytest.mark.processes
@pytest.mark.parametrize(("example", "response"), REQUESTS_WITH_RESPONSE)
def test_request_gets_the_documented_response(example: Example, response: Example, shop: Shop) -> None:
    output = shop.sh(example.text)
    if "If-None-Match" in example.text:
        etag = re.findall(r'etag: "(.*)"', output)[0]
        output = shop.sh(re.sub("[0-9a-f]{32}-[0-9a-f]{32}", etag, example.text))

    assert parse_response(output) == parse_response(response.text)


@pytest.mark.processes
@pytest.mark.parametrize("example", REQUESTS_WITHOUT_RESPONSE)
def test_request_without_a_documented_response_finds_one_payment(example: Example, shop: Shop) -> None:
    assert json.loads(shop.sh(example.text))["count"] == 1


@pytest.mark.processes
def test_prompt_for_the_key_exports_the_key(shop: Shop) -> None:
    [command] = [example.text for example in EXAMPLES if "read -r" in example.text]

    assert shop.sh(f"unset PAYMENTS_KEY; {command} printenv PAYMENTS_KEY", input=f"{shop.key}\n") == f"{shop.key}\n"


Program = Callable[[Example, Shop], list[str]]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def command(example: Example, shop: Shop) -> list[str]:
        interpreter, suffix = INTERPRETERS[example.language]
        if interpreter != sys.executable:
            require(interpreter)
        path = tmp_path / f"walk.{suffix}"
        path.write_text(example.text.replace(EXAMPLE_URL, shop.service.base_url))
        return [interpreter, str(path)]

    return command


@pytest.mark.processes
@pytest.mark.parametrize("example", PROGRAMS)
def test_program_prints_the_documented_output(example: Example, program: Program, shop: Shop) -> None:
    assert output_of(program(example, shop), env=shop.environment) == OUTPUT


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
@pytest.mark.parametrize("example", PROGRAMS)
def test_program_follows_next_to_the_end(example: Example, program: Program, large_shop: Shop) -> None:
    output = output_of(program(example, large_shop), env=large_shop.environment)

    assert re.findall(r"pt_\w+", output) == [f"pt_large{number:03}" for number in reversed(range(LARGE_COUNT))]


@pytest.mark.processes
@pytest.mark.parametrize("example", PROGRAMS)
def test_program_with_an_invalid_key_fails(example: Example, program: Program, shop: Shop) -> None:
    process = run_command(program(example, shop), env=shop._replace(key="nonsense").environment)

    assert process.returncode != 0
    assert "401" in process.stdout + process.stderr


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
    record, details, money, links = (
        json_schemas()[name]["properties"] for name in ("Record", "Details", "Money", "RecordLinks")
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


def test_reference_has_a_section_for_every_error_status() -> None:
    assert re.findall(r"^### (\d{3} .*)$", REFERENCE, flags=re.MULTILINE) == [
        f"{status.value} {status.phrase}" for status in sorted([*LIST_ERRORS, HTTPStatus.NOT_FOUND, HTTPStatus.GONE])
    ]


@pytest.mark.parametrize(
    "detail",
    [
        *DETAILS.values(),
        *(kind.default_detail for kind in (QueryTimeout, TooManyFilters, Unavailable, UnreadableRequest)),
        "This API key is invalid.",
        "Unknown parameter.",
        "Send at most 200 parameters.",
        "An internal error occurred. The service's log has the details.",
    ],
)
def test_reference_has_the_detail_of_every_error(detail: str) -> None:
    assert detail in WORDS
