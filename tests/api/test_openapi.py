"""The API's description of itself: valid, complete, and kept to."""

import contextlib
import re
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from openapi_spec_validator import OpenAPIV31SpecValidator

from payments.models import Organization, Status
from tests.support.api import Api
from tests.support.factories import PaymentFactory

STATUSES = {"200", "304", "400", "401", "405", "406", "429", "500", "503"}


@pytest.fixture
def schema(client: Client, db: None) -> Any:
    response = client.get("/docs/openapi.json")
    assert response.status_code == 200
    return response.json()


def validate(schema: Any, name: str, instance: Any) -> None:
    """Hold `instance` to a component of the document, references and all."""
    Draft202012Validator({**schema, "$ref": f"#/components/schemas/{name}"}).validate(instance)


def test_document_is_valid_openapi(schema: Any) -> None:
    OpenAPIV31SpecValidator(schema).validate()


def test_every_status_of_every_operation_is_declared(schema: Any) -> None:
    assert schema["openapi"] == "3.1.0"
    assert {path: set(operations["get"]["responses"]) for path, operations in schema["paths"].items()} == {
        "/v2/payments": STATUSES,
        "/v2/payments/{payment_id}": STATUSES | {"404"},
    }


def test_parameters_have_their_bounds(schema: Any) -> None:
    parameters = {item["name"]: item["schema"] for item in schema["paths"]["/v2/payments"]["get"]["parameters"]}

    moment = parameters["createdAt"]["properties"]["gte"]
    amount = parameters["amount"]["properties"]["gte"]
    assert parameters == {
        "limit": {"type": "integer", "minimum": 1, "maximum": 250, "default": 20},
        "from": {"type": "string", "pattern": "^pt_[A-Za-z0-9]{1,61}$"},
        "sort": {"type": "string", "enum": ["desc", "asc"], "default": "desc"},
        "status": listed(enum=Status.values),
        "method": listed(pattern="^[a-z0-9_]{1,32}$"),
        "customerId": listed(pattern="^ct_[A-Za-z0-9]{1,61}$"),
        "sequenceType": listed(enum=["oneoff", "first", "recurring"]),
        "currency": listed(enum=parameters["currency"]["items"]["enum"]),
        "createdAt": ranged(moment),
        "paidAt": ranged(moment),
        "amount": ranged(amount),
        "metadata": {
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": 500},
            "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 500},
            "maxProperties": 5,
        },
    }
    assert {"EUR", "JPY", "USD"} <= set(parameters["currency"]["items"]["enum"])
    assert [re.search(moment["pattern"], text) is not None for text in ("2026-01-01", "2026-01-01T24:00:00")] == [
        True,
        False,
    ]
    assert [re.search(amount["pattern"], text) is not None for text in ("-10.5", "10.555")] == [True, False]


def listed(**item: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", **item}, "minItems": 1, "maxItems": 20}


def ranged(bound: dict[str, Any]) -> dict[str, Any]:
    bounds = dict.fromkeys(["gte", "gt", "lte", "lt"], bound)
    return {"type": "object", "properties": bounds, "additionalProperties": False}


def test_filters_are_described_as_they_are_written_in_a_query(schema: Any) -> None:
    parameters = {item["name"]: item for item in schema["paths"]["/v2/payments"]["get"]["parameters"]}

    ways = {name: (item.get("style"), item.get("explode"), item.get("example")) for name, item in parameters.items()}
    assert ways["status"] == ("form", False, ["open", "pending"])
    assert ways["createdAt"] == ("deepObject", True, {"gte": "2026-01-01"})
    assert ways["metadata"] == ("deepObject", True, {"order": "84820"})
    assert all(item["description"] for item in parameters.values())


def test_every_part_is_a_json_schema(schema: Any) -> None:
    for part in schema["components"]["schemas"].values():
        validator_for({}, Draft202012Validator).check_schema(part)


def test_a_page_is_described_with_its_links(schema: Any) -> None:
    link = {"$ref": "#/components/schemas/Link"}
    payments = {"type": "array", "items": {"$ref": "#/components/schemas/Payment"}}

    assert schema["components"]["schemas"]["PaginatedPaymentList"] == {
        "type": "object",
        "required": ["count", "_embedded", "_links"],
        "properties": {
            "count": {
                "type": "integer",
                "minimum": 0,
                "maximum": 250,
                "description": "The number of payments in this page.",
            },
            "_embedded": {"type": "object", "required": ["payments"], "properties": {"payments": payments}},
            "_links": {
                "type": "object",
                "required": ["self", "documentation"],
                "properties": {"self": link, "previous": link, "next": link, "documentation": link},
            },
        },
    }


def test_answers_are_what_it_says(api: Api, schema: Any, organization: Organization) -> None:
    payments = [
        PaymentFactory.create(organization=organization, open=True, method=""),
        PaymentFactory.create(organization=organization, metadata='{"a":"b"}', customer_id="ct_1"),
    ]

    validate(schema, "PaginatedPaymentList", api.get().json())
    validate(schema, "PaginatedPaymentList", api.get(limit=1, from_=payments[0].id).json())
    validate(schema, "Payment", api.get(f"/v2/payments/{payments[1].id}").json())
    validate(schema, "Problem", api.get(limit=0).json())
    validate(schema, "Problem", api.get("/v2/payments/pt_unknown").json())


@pytest.mark.parametrize("path", ["swagger-ui.css", "swagger-ui-bundle.js"])
def test_what_its_interactive_page_loads_is_served(client: Client, db: None, path: str) -> None:
    with contextlib.closing(client.get(f"/static/drf_spectacular_sidecar/swagger-ui-dist/{path}")) as response:
        assert response.status_code == 200
