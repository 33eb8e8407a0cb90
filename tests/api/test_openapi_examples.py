"""The examples of the OpenAPI document match their schemas, and are what the service responds with."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory
from jsonschema_rs import Draft202012Validator
from pytest_django import Settings

from payments.api.openapi import EXAMPLE_URL, PAGE, PAYMENT, openapi_document
from payments.api.streams import RECORDS_MAX
from payments.models import KeyScope, Organization
from payments.runtime.rate_limits import RateLimit
from payments.service import error_pages
from tests.support.api import Api
from tests.support.factories import ApiKeyFactory
from tests.support.lines import line, store
from tests.support.processes import ROOT

pytestmark = pytest.mark.once

DOCUMENT = openapi_document()
PATHS = DOCUMENT["paths"]
IMPORTS, LINES = "/v2/payments/imports", "application/x-ndjson"
BODIES = PATHS[IMPORTS]["post"]["requestBody"]["content"]
TOTALS = "/v2/payments/totals?from=2026-11-20&to=2026-11-20"
NEWER, OLDER = (PAGE["_links"][relation]["href"].rpartition("=")[2] for relation in ("previous", "next"))


def resolve(response: Any) -> Any:
    """Return the component that a response refers to, or the response itself."""
    return DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]] if "$ref" in response else response


def errors_of(schema: Any, instance: Any) -> list[Any]:
    return list(Draft202012Validator({**schema, "components": DOCUMENT["components"]}).iter_errors(instance))


def responses() -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the status and the description of each response."""
    for path, operations in PATHS.items():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                yield path, status, resolve(response)


def example_of(path: str, status: str) -> Any:
    [operation] = PATHS[path].values()
    [content] = resolve(operation["responses"][status])["content"].values()
    return content["example"]


@pytest.fixture
def api(client: Client, db: None, settings: Settings) -> Api:
    """The service of the examples: its address, its payments, and a limit for requests."""
    settings.PAYMENTS_PUBLIC_BASE_URL = EXAMPLE_URL
    settings.PAYMENTS_RATE_LIMIT = RateLimit(600, seconds=60)
    organization = PAYMENT["organizationId"]
    store([json.dumps(PAYMENT).encode()])
    store(
        line(id=payment_id, organizationId=organization, createdAt=f"2026-11-{day}T00:00:00.000")
        for payment_id, day in ((NEWER, 21), (OLDER, 19))
    )
    return Api(client, ApiKeyFactory.create(organization=Organization.objects.get(id=organization)))


def sender_of(api: Api) -> Api:
    """Return a client with a key for imports of the same organization."""
    return Api(api.client, ApiKeyFactory.create(organization=api.key.organization, scope=KeyScope.IMPORT))


def post(sender: Api, body: str, content_type: str = LINES, /, **variables: Any) -> Any:
    headers = sender.authorization
    return sender.client.generic("POST", IMPORTS, body, content_type, headers=headers, **variables)


def test_every_request_has_valid_examples() -> None:
    operations = [operation for path in PATHS.values() for operation in path.values()]
    parameters = [item for operation in operations for item in operation.get("parameters", [])]
    headers = DOCUMENT["components"]["headers"].values()
    bodies = BODIES.values()

    assert [item for item in (*parameters, *headers, *bodies) if errors_of(item["schema"], item["example"])] == []


@pytest.mark.parametrize("media_type", BODIES)
def test_examples_of_bodies_are_imported(api: Api, media_type: str) -> None:
    example = BODIES[media_type]["example"]

    response = post(sender_of(api), example if isinstance(example, str) else json.dumps(example), media_type)

    assert response.json() == example_of(IMPORTS, "200")
    assert response.headers.keys() >= PATHS[IMPORTS]["post"]["responses"]["200"]["headers"].keys()
    [payment] = BODIES["application/json"]["example"]
    stored = api.get(f"/v2/payments/{payment['id']}").json()
    assert {name: value for name, value in stored.items() if name not in {"resource", "_links"}} == payment


def test_every_response_has_a_valid_example_and_headers() -> None:
    for path, status, response in responses():
        assert response["headers"]["X-Request-ID"]
        if status == "304":
            assert "ETag" in response["headers"]
            continue
        [content] = response["content"].values()
        assert errors_of(content["schema"], content["example"]) == [], (path, status)


def test_example_of_a_page_is_that_of_the_reference() -> None:
    blocks = re.findall(r"```json\n(.*?)```", (ROOT / "docs/api/reference.md").read_text(), re.DOTALL)

    assert PAGE in map(json.loads, blocks)


def test_examples_are_what_the_service_responds_with(api: Api) -> None:
    page = api.get(limit=1, from_=PAYMENT["id"]).json()
    payment = api.get(f"/v2/payments/{PAYMENT['id']}").json()
    changes = api.get("/v2/payments/changes", limit=1).content.decode()
    totals = api.get("/v2/payments/totals", from_="2026-11-20", to="2026-11-20", by="month").json()

    assert page == example_of("/v2/payments", "200")
    assert payment == example_of("/v2/payments/{payment_id}", "200")
    assert totals == example_of("/v2/payments/totals", "200")
    expected = json.dumps(example_of("/v2/payments/changes", "200"))
    assert without_tokens(changes) == without_tokens(expected)


def without_tokens(text: str) -> Any:
    return json.loads(re.sub(r"from=[\w-]{20,}", "from=TOKEN", text))


def test_examples_of_errors_are_what_the_service_responds_with(api: Api, settings: Settings) -> None:
    request = RequestFactory().get("/v2/payments", headers={"Host": "testserver"})
    token = example_of("/v2/payments/changes", "200")["_links"]["later"]["href"].rpartition("=")[2]
    sender = sender_of(api)
    record = json.loads(BODIES[LINES]["example"])
    served: dict[str, Any] = {
        "400": api.get(colour="red"),
        "401": api.client.get("/v2/payments"),
        "403": sender.get(),
        "404": api.get("/v2/payments/pt_unknown"),
        "405": api.send("POST", "/v2/payments"),
        "406": api.send("GET", "/v2/payments", Accept="text/csv"),
        "410": api.get("/v2/payments/changes", from_=token),
        "411": post(sender, "{}", HTTP_TRANSFER_ENCODING="chunked"),
        "413": post(sender, '{"id":1}\n' * (RECORDS_MAX + 1)),
        "415": post(sender, "{}", "text/plain"),
        "422": post(sender, json.dumps(record | {"currency": "EUR"})),
        "500": error_pages.server_error(request),
        "503": error_pages.unavailable(request),
    }
    settings.PAYMENTS_IMPORT_SECONDS_MAX = 0  # every body is late
    served["408"] = post(sender, "{}")
    settings.PAYMENTS_RATE_LIMIT = RateLimit(1, seconds=60)
    served["429"] = api.get()

    examples = {status: (path, resolve(response)) for path, status, response in responses() if status >= "400"}
    assert served.keys() == examples.keys()
    for status, response in served.items():
        path, described = examples[status]
        assert without_request_id(json.loads(response.content)) == without_request_id(example_of(path, status)), status
        assert described["headers"].keys() <= response.headers.keys(), status
        assert_headers_match(response)


def without_request_id(problem: Any) -> Any:
    return {**problem, "requestId": "..."}


def assert_headers_match(response: HttpResponse) -> None:
    for name, header in DOCUMENT["components"]["headers"].items():
        if name in response.headers:
            value: Any = response.headers[name]
            value = int(value) if header["schema"]["type"] == "integer" else value
            assert errors_of(header["schema"], value) == [], name


@pytest.mark.parametrize("path", ["/v2/payments", "/v2/payments/changes", TOTALS, f"/v2/payments/{PAYMENT['id']}"])
def test_responses_have_the_described_headers(api: Api, path: str) -> None:
    described = DOCUMENT["components"]["responses"]["NotModified"]["headers"]

    response = api.send("GET", path)
    not_modified = api.send("GET", path, If_None_Match=response.headers["ETag"])

    assert (response.status_code, not_modified.status_code) == (200, 304)
    for each in (response, not_modified):
        assert described.keys() <= each.headers.keys()
        assert_headers_match(each)
