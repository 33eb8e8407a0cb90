"""What the API's documentation shows is what the service answers, and what the service has is in it."""

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt

from payments.api.errors import DETAILS, QueryTimeout, Unavailable, UnreadableRequest
from payments.api.openapi import LIST_ERRORS
from payments.api.parameters import NAMES
from payments.api.problems import Problem
from payments.filters import FILTERS
from payments.models import Mode, SequenceType, Status
from payments.record import encode, json_schemas, record_time
from tests.support.contract import PAGE_KEYS, PAGE_LINKS, RULES
from tests.support.factories import NOON
from tests.support.lines import line
from tests.support.processes import ROOT
from tests.support.service import Service
from tests.support.tools import require

INDEX, REFERENCE = ((ROOT / "docs/api" / name).read_text() for name in ("index.md", "reference.md"))

EXAMPLE = "https://pay.example"
ORGANIZATION, LARGE_ORGANIZATION = 5100, 5101
LARGE_COUNT = 600
REQUESTS_A_MINUTE = 600

# What every answer has of its own, beside ids and ETags.
OWN = re.compile(r"^(date: |content-length: |ratelimit: .*;t=|retry-after: (?=\d\d)).*$", re.MULTILINE)

# What runs a program, and what its file is called.
INTERPRETERS = {"python": (sys.executable, "py"), "javascript": ("node", "mjs"), "php": ("php", "php")}


class Example(NamedTuple):
    """A fenced text, and the heading that it stands under."""

    section: str
    language: str
    text: str


def examples(document: str) -> Iterator[Example]:
    section = ""
    for before, token in pairwise(MarkdownIt("commonmark").parse(document)):
        if before.type == "heading_open":
            section = token.content
        if token.type == "fence":
            yield Example(section, token.info, token.content)


EXAMPLES = [*examples(INDEX), *examples(REFERENCE)]
ANSWERS = {"json", "http"}
ANSWERED = [
    pytest.param(example, answer, id=example.section)
    for example, answer in pairwise(EXAMPLES)
    if example.language == "sh" and answer.language in ANSWERS
]
UNANSWERED = [
    pytest.param(example, id=example.section)
    for example, answer in pairwise(EXAMPLES)
    if example.language == "sh" and answer.language not in ANSWERS and "curl" in example.text
]
PROGRAMS = [pytest.param(example, id=example.language) for example in EXAMPLES if example.language in INTERPRETERS]
[PRINTED] = [example.text for example in EXAMPLES if example.language == "text"]


class Shop(NamedTuple):
    """A service, and the key of one who reads its payments."""

    service: Service
    key: str

    def sh(self, command: str, **options: Any) -> str:
        """Run a command that asks this service, as it does on the site, and return what the documents show."""
        here = command.replace(EXAMPLE, self.service.base_url)
        return self.run(["sh", "-c", here], **options).replace(self.service.base_url, EXAMPLE)

    def run(self, command: list[str], **options: Any) -> str:
        done = self.completed(command, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def completed(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PAYMENTS_KEY": self.key}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def shop(service: Service) -> Shop:
    """Whose payments are those that the documents show."""
    service.import_records(map(encode, shown_records()))
    return Shop(service, service.create_api_key(organization=ORGANIZATION, mode="live"))


@pytest.fixture(scope="module")
def limited(shop: Shop) -> Iterator[Shop]:
    """Where no request is left to the key."""
    service = Service(shop.service.database_url, settings={"RATE_LIMIT": f"{REQUESTS_A_MINUTE}/minute"})
    with service.serving(), closing(http.client.HTTPConnection("127.0.0.1", service.port)) as connection:
        for _ in range(REQUESTS_A_MINUTE):
            connection.request("GET", "/v2/payments", headers={"Authorization": f"Bearer {shop.key}"})
            connection.getresponse().read()
        yield Shop(service, shop.key)


SHOPS = {"429 Too Many Requests": "limited"}


def shown_records() -> Iterator[Any]:
    for example in EXAMPLES:
        document = json.loads(example.text) if example.language == "json" else {}
        for record in [*document.get("_embedded", {}).get("payments", []), *([document] if "id" in document else [])]:
            yield {name: value for name, value in record.items() if name != "_links"}


def neutral(text: str) -> str:
    """Return a text without what no other answer has."""
    return OWN.sub(r"\1...", re.sub(r"\b[0-9a-f]{32}\b", "...", text))


def taken_apart(answer: str) -> tuple[str, Any]:
    """Return an answer's head, where it is shown, and its document, the keys of objects in order."""
    text = neutral(answer.replace("\r", "")).strip()
    head, _, body = text.partition("\n\n") if text.startswith("HTTP") else ("", "", text)
    return head, json.loads(body, object_pairs_hook=list) if body else None


def test_no_example_is_left_out() -> None:
    """A request is run by itself, or with its answer; what is printed belongs to all programs."""
    counted = 2 * len(ANSWERED) + len(UNANSWERED) + len(PROGRAMS) + len([PRINTED])
    asking_for_the_key = 1

    assert counted + asking_for_the_key == len(EXAMPLES)


@pytest.mark.parametrize(("example", "answer"), ANSWERED)
def test_an_answer_that_is_shown_is_what_the_service_gives(
    example: Example, answer: Example, request: pytest.FixtureRequest
) -> None:
    reader: Shop = request.getfixturevalue(SHOPS.get(example.section, "shop"))

    given = reader.sh(example.text)
    if "If-None-Match" in example.text:
        etag = re.findall(r'etag: "(.*)"', given)[0]
        given = reader.sh(re.sub("[0-9a-f]{32}", etag, example.text))

    assert taken_apart(given) == taken_apart(answer.text)


@pytest.mark.parametrize("example", UNANSWERED)
def test_a_request_whose_answer_is_not_shown_finds_a_payment_that_is(example: Example, shop: Shop) -> None:
    assert json.loads(shop.sh(example.text))["count"] == 1


def test_a_key_is_asked_for_and_exported(shop: Shop) -> None:
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
        path.write_text(example.text.replace(EXAMPLE, shop.service.base_url))
        return [interpreter, str(path)]

    return command


@pytest.mark.parametrize("example", PROGRAMS)
def test_a_program_prints_what_is_shown(example: Example, program: Program, shop: Shop) -> None:
    assert shop.run(program(example, shop)) == PRINTED


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


@pytest.mark.parametrize("example", PROGRAMS)
def test_a_program_follows_next_to_the_end(example: Example, program: Program, large_shop: Shop) -> None:
    printed = large_shop.run(program(example, large_shop))

    assert re.findall(r"pt_\w+", printed) == [f"pt_large{number:03}" for number in reversed(range(LARGE_COUNT))]


@pytest.mark.parametrize("example", PROGRAMS)
def test_a_program_that_is_refused_fails(example: Example, program: Program, shop: Shop) -> None:
    done = shop._replace(key="nonsense").completed(program(example, shop))

    assert done.returncode != 0
    assert "401" in done.stdout + done.stderr


# What the service has is in the reference.

WORDS = " ".join(REFERENCE.split())


def named(section: str) -> list[str]:
    """Return the names in the first column of a section's table."""
    text = re.split(r"^#+ ", REFERENCE.partition(f"# {section}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    cells = re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE)
    return [name for cell in cells for name in re.findall("`(.+?)`", cell)]


def test_every_parameter_is_there() -> None:
    found = {*named("Parameters"), *named("Value filters"), *named("Range filters"), "metadata"}

    assert found == {*NAMES, *FILTERS}
    assert "`metadata[KEY]=VALUE`" in REFERENCE


@pytest.mark.parametrize("name", [name for name in RULES if name != "sort"])
def test_what_a_parameter_must_be_is_said_in_the_words_of_its_refusal(name: str) -> None:
    assert RULES[name] in WORDS


def test_every_field_of_a_record_is_there_in_its_order() -> None:
    record, details, money, links = (
        json_schemas()[name]["properties"] for name in ("Record", "Details", "Money", "RecordLinks")
    )
    plain = [name for name in record if name != "_links"]

    assert named("Payment record") == [*plain, *(f"_links.{name}" for name in links)]
    assert named("Details") == [*details]
    assert all(f"`{name}`" in REFERENCE for name in money)


@pytest.mark.parametrize("word", [*Status.values, *Mode.values, *SequenceType.values])
def test_every_word_of_the_records_is_there(word: str) -> None:
    assert f"`{word}`" in REFERENCE


def test_every_part_of_a_page_and_of_an_error_is_there_in_its_order() -> None:
    count, embedded, _ = PAGE_KEYS
    problem = Problem.__struct_encode_fields__[:-1]

    assert named("Page") == [count, f"{embedded}.payments", *(f"_links.{name}" for name in PAGE_LINKS)]
    assert named("Errors") == [*problem, "_links.documentation"]


def test_every_status_has_a_section() -> None:
    assert re.findall(r"^### (\d{3} .*)$", REFERENCE, flags=re.MULTILINE) == [
        f"{status.value} {status.phrase}" for status in sorted([*LIST_ERRORS, HTTPStatus.NOT_FOUND])
    ]


@pytest.mark.parametrize(
    "detail",
    [
        *DETAILS.values(),
        *(kind.default_detail for kind in (QueryTimeout, Unavailable, UnreadableRequest)),
        "This API key is invalid.",
        "There is no parameter of this name.",
        "An internal error occurred. The service's log has the details.",
    ],
)
def test_every_sentence_that_an_error_says_is_there(detail: str) -> None:
    assert detail in WORDS
