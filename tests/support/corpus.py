"""Requests with the responses that the contract requires: each line of a file in tests/corpus is a case.

| key | |
|---|---|
| `send` | the request line, without the HTTP version |
| `headers`, `without`, `body` | headers added to Host and Authorization or replacing them; headers left out; the body |
| `status` | the status of the response |
| `field` | the invalid parameter that a 400 names |
| `detail` | the start of the text of an error, if the status and the field do not determine it |
| `error` | the error that a 401 names |
| `page` | the query of the `self` link of a 200, if it is not the first page of 20 |
| `ids` | the payments on that page, if it does not have all payments from its start on |
| `base` | the start of the links, if it is not the host's own address |
| `html` | the path is outside the API, and the response is an HTML page |
| `served` | differences over HTTP, if the server responds before the application can (`empty`: without a body) |
| `why` | the reason for the case, if a reader could not guess it |

Each character is one byte. « and » enclose a placeholder: the key, the host, the path of both resources (one case for
each), or a text and how often it is repeated.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.support.contract import assert_meets_contract
from tests.support.exchange import Response
from tests.support.lines import issue_key, line, store

DIRECTORY = Path(__file__).parents[1] / "corpus"
SUBJECTS = sorted(file.stem for file in DIRECTORY.glob("*.jsonl"))

VISIBLE_IDS = ["pt_Newest", "pt_Middle", "pt_Oldest"]
CHANGES = "/v2/payments/changes"
RESOURCES = {"list": "/v2/payments", "changes": CHANGES, "record": "/v2/payments/pt_Newest"}
KEYS_OF_REQUEST = {"send", "headers", "without", "body", "served", "why"}  # the other keys are about the response
PLACEHOLDER = re.compile(r"«(.+?)(?:\*([0-9]+))?»", re.DOTALL)


def store_payments() -> str:
    """Import the payments that the cases name. Return a key that sees `VISIBLE_IDS`."""
    visible = [
        line(id=VISIBLE_IDS[n], organizationId="9001", createdAt=f"2026-01-0{3 - n}T12:00:00.000") for n in range(3)
    ]
    other_mode = line(id="pt_Test", organizationId="9001", mode="test")
    other_organization = line(id="pt_Foreign", organizationId="9002")
    store([*visible, other_mode, other_organization])
    return issue_key(organization=9001, mode="live")


@dataclass(frozen=True)
class Expected:
    """The response that the contract requires."""

    status: int
    base: str
    field: str | None = None
    detail: str = ""
    error: str | None = None
    page: str = "limit=20&from=pt_Newest"
    ids: list[str] | None = None
    html: bool = False
    empty: bool = False

    def assert_met(self, response: Response, *, method: str) -> None:
        """Check a response against the contract and against this case."""
        assert response.status == self.status, response
        if self.empty:
            assert response.body == b""
            return
        if self.html:
            assert (response.header("Content-Type") or "").startswith("text/html")
            return
        document = assert_meets_contract(response, method=method, base=self.base)
        if self.status == 401:
            error = f', error="{self.error}"' if self.error else ""
            assert response.header("WWW-Authenticate") == f'Bearer realm="payments"{error}'
        if document is not None:
            self.assert_document(document)

    def assert_document(self, document: Any) -> None:
        assert document.get("field") == self.field
        assert document.get("detail", "").startswith(self.detail)
        if "timeZone" in document:
            assert document["_links"]["self"]["href"].endswith(f"/totals?{self.page}")
        elif "later" in document.get("_links", {}):
            assert document["_links"]["self"]["href"] == f"{self.base}{CHANGES}?{self.page_of_changes}"
            ids = sorted(VISIBLE_IDS) if self.ids is None else self.ids
            assert [record["id"] for record in document["_embedded"]["payments"]] == ids
        elif "count" in document:
            expected_ids = self.ids_from_start if self.ids is None else self.ids
            assert document["_links"]["self"]["href"] == f"{self.base}/v2/payments?{self.page}"
            assert [record["id"] for record in document["_embedded"]["payments"]] == expected_ids
        elif "id" in document:
            assert document["id"] == "pt_Newest"

    @property
    def page_of_changes(self) -> str:
        """Return the query of the feed's `self` link. A case for all resources gets the first page of 20."""
        return "limit=20" if "from=pt_" in self.page else self.page

    @property
    def ids_from_start(self) -> list[str]:
        limit, start = re.findall("=([^&]*)", self.page)
        return VISIBLE_IDS[VISIBLE_IDS.index(start) :][: int(limit)]


@dataclass(frozen=True)
class Case:
    """One line of the corpus, for one resource."""

    name: str
    send: str
    expected: Expected
    expected_over_http: Expected
    headers: tuple[str, ...]
    without: tuple[str, ...]
    body: str


def read_cases(subject: str, *, host: str, key: str) -> Iterator[Case]:
    """Yield the cases of a file, with their placeholders replaced."""
    for number, text in enumerate((DIRECTORY / f"{subject}.jsonl").read_text().splitlines(), start=1):
        for resource, path in RESOURCES.items() if "«resource»" in text else [("", "")]:
            item = json.loads(replace_placeholders(text, host=host, key=key, resource=path))
            yield build_case(item, host=host, name=f"{subject}.jsonl:{number} {resource}".rstrip())


def build_case(item: dict[str, Any], *, host: str, name: str = "") -> Case:
    of_response = {key: value for key, value in item.items() if key not in KEYS_OF_REQUEST}
    expected = Expected(**{"base": f"http://{host}", **of_response})
    return Case(
        name=name,
        send=item["send"],
        headers=tuple(item.get("headers", ())),
        without=tuple(item.get("without", ())),
        body=item.get("body", ""),
        expected=expected,
        expected_over_http=replace(expected, **item.get("served", {})),
    )


def replace_placeholders(text: str, **values: str) -> str:
    return PLACEHOLDER.sub(lambda match: match[1] * int(match[2]) if match[2] else values[match[1]], text)
