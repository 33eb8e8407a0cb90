"""The OpenAPI document is valid and complete, and the responses match it."""

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from jsonschema_rs import Draft202012Validator
from pytest_django import Settings

from payments import __version__
from payments.api.imports import PaymentImports
from payments.api.streams import BYTES_MAX, RECORDS_MAX
from payments.docs.views import openapi_json
from payments.models import DayKind, KeyScope, Organization, Status
from payments.totals.report import Unit
from tests.support.api import Api
from tests.support.commands import output_of
from tests.support.factories import ApiKeyFactory, PaymentFactory
from tests.support.lines import line, store

pytestmark = pytest.mark.once

ERRORS = {"400", "401", "403", "405", "406", "429", "500", "503"}
STATUSES = ERRORS | {"200", "304"}


@pytest.fixture
def schema(client: Client, db: None) -> Any:
    response = client.get("/docs/openapi.json")
    assert response.status_code == 200
    return response.json()


def validator(schema: Any, name: str) -> Draft202012Validator:
    """Return the validator of a component of the document.

    :raises ValidationError: the component is not a valid schema
    """
    return Draft202012Validator({**schema, "$ref": f"#/components/schemas/{name}"})


def test_document_names_the_version_of_the_api_and_the_release(schema: Any) -> None:
    assert (schema["info"]["version"], schema["info"]["x-release"]) == ("2", __version__)


def test_document_is_valid_openapi(schema: Any) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: PLC0415  the import takes two seconds

    OpenAPIV31SpecValidator(schema).validate()


@pytest.mark.parametrize(
    ("base_url", "address"),
    [("", "http://shop.example:8000"), ("https://pay.example/books", "https://pay.example/books")],
)
def test_document_names_this_service_as_its_server(
    client: Client, settings: Settings, base_url: str, address: str
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    settings.PAYMENTS_PUBLIC_BASE_URL = base_url

    document = client.get("/docs/openapi.json", headers={"Host": "shop.example:8000"}).json()

    assert [server["url"] for server in document["servers"]] == [address]
    assert document["info"]["contact"]["url"] == f"{address}/docs/"
    assert document["externalDocs"]["url"] == f"{address}/docs/changes/"


def test_document_is_built_once_for_all_hosts(client: Client, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    openapi_json.cache_clear()

    documents = {client.get("/docs/openapi.json", headers={"Host": f"{n}.example"}).content for n in range(3)}

    assert len(documents) == 3
    assert openapi_json.cache_info().misses == openapi_json.cache_info().currsize == 1


def test_every_status_of_every_operation_is_declared(schema: Any) -> None:
    assert schema["openapi"] == "3.1.0"
    assert {path: set(operation["responses"]) for path, operation in operations_of(schema).items()} == {
        "/v2/payments": STATUSES,
        "/v2/payments/changes": STATUSES | {"410"},
        "/v2/payments/totals": STATUSES,
        "/v2/payments/imports": ERRORS | {"200", "408", "411", "413", "415", "422"},
        "/v2/payments/{payment_id}": STATUSES | {"404"},
    }


def operations_of(schema: Any) -> dict[str, Any]:
    """Return the only operation of each path."""
    return {path: operation for path, operations in schema["paths"].items() for operation in operations.values()}


def test_imports_have_the_media_types_and_the_limit_of_the_code(schema: Any) -> None:
    assert list(schema["paths"]["/v2/payments/imports"]) == ["post"]
    operation = operations_of(schema)["/v2/payments/imports"]
    content = operation["requestBody"]["content"]

    assert content.keys() == {parser.media_type for parser in PaymentImports.parser_classes}
    assert next(iter(content)) == "application/json"  # generators take the first one
    assert content["application/json"]["schema"]["maxItems"] == RECORDS_MAX
    assert f"{RECORDS_MAX:,} records and {BYTES_MAX // 2**20} MiB" in operation["description"]


def test_payment_to_import_is_a_payment_without_what_the_service_writes(schema: Any) -> None:
    payment, given = (schema["components"]["schemas"][name] for name in ("Payment", "PaymentInput"))

    assert payment["properties"].keys() - given["properties"].keys() == {"resource", "_links"}
    assert set(payment["required"]) - set(given["required"]) == {"resource", "_links"}
    assert given["properties"].items() <= payment["properties"].items()


def test_parameters_have_their_bounds(schema: Any) -> None:
    parameters = {item["name"]: item["schema"] for item in parameters_of(schema, "/v2/payments")}

    time = parameters["createdAt[gte]"]
    amount = parameters["amount[gte]"]
    assert parameters == {
        "limit": {"type": "integer", "minimum": 1, "maximum": 250, "default": 20},
        "from": {"type": "string", "pattern": "^pt_[A-Za-z0-9_-]{1,61}$"},
        "sort": {"type": "string", "enum": ["desc", "asc"], "default": "desc"},
        "status": list_schema(enum=Status.values),
        "method": list_schema(pattern="^[A-Za-z0-9_-]{1,32}$"),
        "customerId": list_schema(pattern="^ct_[A-Za-z0-9_-]{1,61}$"),
        "sequenceType": list_schema(enum=["oneoff", "first", "recurring"]),
        "currency": list_schema(pattern="^[A-Z]{3}$"),
        **{f"{field}[{bound}]": time for field in ("createdAt", "paidAt") for bound in ("gte", "gt", "lte", "lt")},
        **{f"amount[{bound}]": amount for bound in ("gte", "gt", "lte", "lt")},
        "metadata": {**list_schema(**parameters["metadata"]["items"]), "maxItems": 5},
        "If-None-Match": {"type": "string"},
    }
    assert [re.search(time["pattern"], text) is not None for text in ("2026-01-01", "2026-01-01T24:00:00")] == [
        True,
        False,
    ]
    assert [re.search(amount["pattern"], text) is not None for text in ("-10.5", "10.555")] == [True, False]


def test_parameters_of_the_feed_have_their_bounds(schema: Any) -> None:
    assert {item["name"]: item["schema"] for item in parameters_of(schema, "/v2/payments/changes")} == {
        "limit": {"type": "integer", "minimum": 1, "maximum": 250, "default": 20},
        "from": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,200}$"},
        "If-None-Match": {"type": "string"},
    }


def test_parameters_of_totals_have_their_bounds(schema: Any) -> None:
    day = {"type": "string", "format": "date"}

    parameters = parameters_of(schema, "/v2/payments/totals")

    assert {item["name"]: item["schema"] for item in parameters} == {
        "from": day,
        "to": day,
        "by": {"type": "string", "enum": Unit.values, "default": "total"},
        "day": {"type": "string", "enum": DayKind.values, "default": "paid"},
        "method": list_schema(pattern="^[A-Za-z0-9_-]{1,32}$"),
        "currency": list_schema(pattern="^[A-Z]{3}$"),
        "If-None-Match": {"type": "string"},
    }
    assert [item["name"] for item in parameters if item.get("required")] == ["from", "to"]


@pytest.mark.parametrize(
    ("pair", "is_valid"),
    [
        ("order:84820", True),
        ("note:a: b\n{c}", True),
        ("é 🍵:1", True),
        (":84820", False),
        ("order", False),
        ("order:", False),
        ('{"order":"84820"}', False),
        ('["order:84820"]', False),
        ('"order":"84820"', False),
    ],
)
def test_pattern_of_metadata_pairs_excludes_printed_objects(schema: Any, pair: str, *, is_valid: bool) -> None:
    [metadata] = [item for item in parameters_of(schema, "/v2/payments") if item["name"] == "metadata"]

    assert Draft202012Validator(metadata["schema"]).is_valid([pair]) is is_valid


def test_patterns_of_urls_accept_what_an_import_accepts(api: Api, schema: Any, organization: Organization) -> None:
    urls = {"redirectUrl": "my+app.2:paid\u200b?é=🍵", "webhookUrl": "http://a/\u00a0\u0085é" + "b" * 2000}
    store([line(organizationId=f"{organization.id}", **urls)])

    payment = api.get("/v2/payments/pt_1").json()

    assert urls.items() <= payment.items()
    validator(schema, "Payment").validate(payment)


def parameters_of(schema: Any, path: str) -> list[Any]:
    parameters: list[Any] = operations_of(schema)[path].get("parameters", [])
    return parameters


def list_schema(**item: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", **item}, "minItems": 1, "maxItems": 20}


def test_enumerations_have_a_type(schema: Any) -> None:
    payment = schema["components"]["schemas"]["Payment"]["properties"]

    assert (payment["mode"]["type"], payment["mode"]["enum"]) == ("string", ["live", "test"])


def test_operations_keep_their_ids(schema: Any) -> None:
    """Generators name functions after them."""
    operations = operations_of(schema).values()

    assert {operation["operationId"] for operation in operations} == {
        "listPayments",
        "listPaymentChanges",
        "getPaymentTotals",
        "importPayments",
        "getPayment",
    }
    assert {tag for operation in operations for tag in operation["tags"]} == {tag["name"] for tag in schema["tags"]}


def test_filters_have_forms_that_most_generators_know(schema: Any) -> None:
    parameters = {item["name"]: item for item in parameters_of(schema, "/v2/payments")}

    styles = {name: (item.get("style"), item.get("explode"), item.get("example")) for name, item in parameters.items()}
    assert styles["status"] == (None, None, ["open", "pending"])
    assert styles["createdAt[gte]"] == (None, None, "2026-01-01")
    assert styles["metadata"] == (None, None, ["order:84820"])
    assert "metadata[KEY]=VALUE" in parameters["metadata"]["description"]


def test_every_component_is_a_json_schema(schema: Any) -> None:
    for name in schema["components"]["schemas"]:
        validator(schema, name)


@pytest.mark.parametrize(
    ("name", "required", "optional"),
    [
        ("PaginatedPaymentList", ["self", "documentation"], ["previous", "next"]),
        ("PaginatedPaymentChangeList", ["self", "later", "documentation"], ["next"]),
    ],
)
def test_page_is_described_with_its_links(schema: Any, name: str, required: list[str], optional: list[str]) -> None:
    page = schema["components"]["schemas"][name]

    links = page["properties"]["_links"]
    assert page["required"] == ["count", "_embedded", "_links"]
    assert (page["properties"]["count"]["minimum"], page["properties"]["count"]["maximum"]) == (0, 250)
    assert page["properties"]["_embedded"]["properties"]["payments"]["items"] == {
        "$ref": "#/components/schemas/Payment"
    }
    assert links["required"] == required
    assert {name: link["$ref"] for name, link in links["properties"].items()} == dict.fromkeys(
        [*required, *optional], "#/components/schemas/Link"
    )


def objects_of(value: Any) -> Iterator[Any]:
    """Yield the objects in JSON data, except examples."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from objects_of(inner)
    if isinstance(value, dict):
        yield value


def test_only_money_is_closed(schema: Any) -> None:
    """Generated clients lose members that a schema does not allow explicitly, or refuse the response."""
    for name, component in schema["components"]["schemas"].items():
        allowed = [each["additionalProperties"] for each in objects_of(component) if each.get("type") == "object"]
        if name in {"Payment", "PaymentInput"}:
            allowed.remove({"type": "string"})  # metadata
        assert set(allowed) == {name != "Money"}, name


# What some language of a generated client does not know, or reads as something else.
UNPORTABLE = re.compile(r"\(\?|\\[^.\[]|[*+?}][*+?]|\[[^]]*(\[[.:=]|&&|--|~~)|^[^^]|[^$]$")


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "^(?:a)$",
            "^(?=a)$",
            "^(?!a)$",
            "^(?P<a>b)$",
            "^(?m:a)$",
            r"^\d$",
            r"^\x20$",
            r"^\u0041$",
            r"^\p{L}$",
            r"\A$",
        ),
        *(r"^\Z", "^a++$", "^a*?$", "^a{2}+$", "^[[:alpha:]]$", "^[a-z&&b]$", r"^[^\x00]$", "a$", "^a"),
    ],
)
def test_unportable_pattern_is_found(pattern: str) -> None:
    assert UNPORTABLE.search(pattern)


def test_patterns_are_regular_expressions_in_all_languages(schema: Any, client: Client) -> None:
    documents = [schema, client.get("/docs/payment.schema.json").json()]
    patterns = sorted({each["pattern"] for each in objects_of(documents) if isinstance(each.get("pattern"), str)})

    assert len(patterns) > 10
    assert [pattern for pattern in patterns if UNPORTABLE.search(pattern)] == []
    assert all(map(re.compile, patterns))
    compile_all = "for (const pattern of JSON.parse(process.argv[1])) new RegExp(pattern, 'u')"
    output_of([Path(sys.executable).with_name("node"), "--eval", compile_all, json.dumps(patterns)])


def test_everything_has_a_description(schema: Any) -> None:
    components = schema["components"]
    properties = [pair for each in objects_of(components["schemas"]) for pair in each.get("properties", {}).items()]
    parameters = [item for path in schema["paths"] for item in parameters_of(schema, path)]

    assert [name for name, inner in properties if not inner.get("description")] == []
    described = [*parameters, *components["headers"].values(), *components["responses"].values()]
    assert [item for item in described if not item["description"]] == []


def test_responses_match_their_schemas(api: Api, schema: Any, organization: Organization) -> None:
    payments = [
        PaymentFactory.create(organization=organization, open=True, method=""),
        PaymentFactory.create(organization=organization, metadata='{"a":"b"}', customer_id="ct_1"),
    ]

    validator(schema, "PaginatedPaymentList").validate(api.get().json())
    validator(schema, "PaginatedPaymentList").validate(api.get(limit=1, from_=payments[0].id).json())
    for parameters in ({}, {"limit": 1}, {"from": "now"}):
        validator(schema, "PaginatedPaymentChangeList").validate(api.get("/v2/payments/changes", **parameters).json())
    for day in ("paid", "created"):
        totals = api.get("/v2/payments/totals", from_="2026-01-01", to="2026-01-01", day=day).json()
        validator(schema, "PaymentTotals").validate(totals)
        assert totals["count"] == 1
    validator(schema, "Payment").validate(api.get(f"/v2/payments/{payments[1].id}").json())
    validator(schema, "Problem").validate(api.get(limit=0).json())
    validator(schema, "Problem").validate(api.get("/v2/payments/changes", from_="x").json())
    validator(schema, "Problem").validate(api.get("/v2/payments/pt_unknown").json())


def test_responses_to_imports_match_their_schemas(client: Client, schema: Any, organization: Organization) -> None:
    sender = Api(client, ApiKeyFactory.create(organization=organization, scope=KeyScope.IMPORT))
    example = operations_of(schema)["/v2/payments/imports"]["requestBody"]["content"]["application/json"]["example"]
    responses = [
        client.post("/v2/payments/imports", [record], content_type="application/json", headers=sender.authorization)
        for record in (example[0] | {"organizationId": f"{organization.id}"}, example[0])
    ]

    assert [response.status_code for response in responses] == [200, 422]
    validator(schema, "PaymentImport").validate(responses[0].json())
    validator(schema, "Problem").validate(responses[1].json())
    validator(schema, "Finding").validate(responses[1].json()["errors"][0])


@pytest.mark.parametrize("path", ["swagger-ui.css", "swagger-ui-bundle.js"])
def test_files_of_the_interactive_page_are_served(client: Client, db: None, path: str) -> None:
    with contextlib.closing(client.get(f"/static/drf_spectacular_sidecar/swagger-ui-dist/{path}")) as response:
        assert response.status_code == 200
