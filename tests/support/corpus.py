"""Requests, and what the contract answers to them: in each file here a case a line.

| key | |
|---|---|
| `send` | the request line, without HTTP's version |
| `headers`, `without`, `body` | headers beside Host and Authorization, or instead; those that are left out; the body |
| `status` | what comes back |
| `field` | the parameter at fault, which a 400 names |
| `error` | the error that a 401 names |
| `page` | which page of the list a 200 is, if not the first of 20 |
| `ids` | which payments it has, if not all from its start on |
| `base` | what the links begin with, if not the host's own address |
| `html` | the path is none of the API's, and the answer a page for people |
| `served` | what differs over HTTP, where the server reads (`empty`: refuses) the request before the application can |
| `why` | what no reader could guess |

Every character is one byte. Between « and » stands what is filled in: the key, the host, each of the two resources, or
a text so many times.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.support.contract import assert_kept
from tests.support.exchange import Response
from tests.support.lines import line
from tests.support.loading import issue_key, store

DIRECTORY = Path(__file__).parents[1] / "corpus"
SUBJECTS = sorted(file.stem for file in DIRECTORY.glob("*.jsonl"))

OURS = ["pt_Newest", "pt_Middle", "pt_Oldest"]
RESOURCES = {"list": "/v2/payments", "record": "/v2/payments/pt_Newest"}
SENT = {"send", "headers", "without", "body", "served", "why"}  # what a case has beside what it expects
PLACEHOLDER = re.compile(r"«(.+?)(?:\*([0-9]+))?»", re.DOTALL)


def load() -> str:
    """Import the payments that the cases name, and return a key that reads those of the first organization."""
    ours = [line(id=OURS[n], organizationId="9001", createdAt=f"2026-01-0{3 - n}T12:00:00.000") for n in range(3)]
    other_mode = line(id="pt_Test", organizationId="9001", mode="test")
    other_organization = line(id="pt_Foreign", organizationId="9002")
    store([*ours, other_mode, other_organization])
    return issue_key(organization=9001, mode="live")


@dataclass(frozen=True)
class Expected:
    """What the contract answers."""

    status: int
    base: str
    field: str | None = None
    error: str | None = None
    page: str = "limit=20&from=pt_Newest"
    ids: list[str] | None = None
    html: bool = False
    empty: bool = False

    def assert_met(self, answer: Response, *, method: str) -> None:
        """Hold an answer to the contract, and to what this case should get."""
        assert answer.status == self.status, answer
        if self.empty:
            assert answer.body == b""
            return
        if self.html:
            assert (answer.header("Content-Type") or "").startswith("text/html")
            return
        document = assert_kept(answer, method=method, base=self.base)
        if self.status == 401:
            error = f', error="{self.error}"' if self.error else ""
            assert answer.header("WWW-Authenticate") == f'Bearer realm="payments"{error}'
        if document is not None:
            self.assert_said(document)

    def assert_said(self, document: Any) -> None:
        assert document.get("field") == self.field
        if "count" in document:
            expected = self.ids_from_start if self.ids is None else self.ids
            assert document["_links"]["self"]["href"] == f"{self.base}/v2/payments?{self.page}"
            assert [record["id"] for record in document["_embedded"]["payments"]] == expected
        elif "id" in document:
            assert document["id"] == "pt_Newest"

    @property
    def ids_from_start(self) -> list[str]:
        limit, start = re.findall("=([^&]*)", self.page)
        return OURS[OURS.index(start) :][: int(limit)]


@dataclass(frozen=True)
class Case:
    """A line of the corpus, for one of the resources."""

    name: str
    send: str
    expected: Expected
    served: Expected
    headers: tuple[str, ...]
    without: tuple[str, ...]
    body: str


def cases(subject: str, *, host: str, key: str) -> Iterator[Case]:
    """Read one of the files, its places filled in."""
    for number, text in enumerate((DIRECTORY / f"{subject}.jsonl").read_text().splitlines(), start=1):
        for resource, path in RESOURCES.items() if "«each»" in text else [("", "")]:
            item = json.loads(filled(text, host=host, key=key, each=path))
            yield read(item, host=host, name=f"{subject}.jsonl:{number} {resource}".rstrip())


def read(item: dict[str, Any], *, host: str, name: str = "") -> Case:
    answered = {key: value for key, value in item.items() if key not in SENT}
    expected = Expected(**{"base": f"http://{host}", **answered})
    return Case(
        name=name,
        send=item["send"],
        headers=tuple(item.get("headers", ())),
        without=tuple(item.get("without", ())),
        body=item.get("body", ""),
        expected=expected,
        served=replace(expected, **item.get("served", {})),
    )


def filled(text: str, **values: str) -> str:
    return PLACEHOLDER.sub(lambda place: place[1] * int(place[2]) if place[2] else values[place[1]], text)
