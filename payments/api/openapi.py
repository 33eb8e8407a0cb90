"""The OpenAPI 3.1 description of the API. Its schemas follow from the declaration of the record and of the filters.

`openapi.json` has the parts that are not declared elsewhere: meanings of properties, examples, headers and errors.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from payments import __version__
from payments.api.parameters import LIMIT_DEFAULT, LIMIT_MAX, NOW
from payments.api.problems import Problem
from payments.api.totals import FILTER_NAMES
from payments.hal import HAL
from payments.listing.filter_types import Filter
from payments.listing.filters import FILTERS, ORDERS
from payments.listing.tokens import TOKEN
from payments.models import PAYMENT_ID
from payments.record import json_schemas, portable

REFERENCE = "#/components/schemas/{name}"

# Stands for the service's address, as in the Markdown pages. The view replaces it.
EXAMPLE_URL = "https://pay.example"

CONTENTS: Any = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes())
PARAMETERS: Mapping[str, Any] = CONTENTS["parameters"]
PAGE: Mapping[str, Any] = CONTENTS["page"]
[PAYMENT] = PAGE["_embedded"]["payments"]
EXAMPLES = {
    "PaginatedPaymentList": PAGE,
    "PaginatedPaymentChangeList": {**PAGE, "_links": CONTENTS["changesLinks"]},
    "PaymentTotals": CONTENTS["totals"],
    "Payment": PAYMENT,
}

# The members that all operations have.
COMMON = {"tags": ["payments"], "security": [{"apiKey": []}]}

LIST_ERRORS = tuple(map(HTTPStatus, (400, 401, 405, 406, 429, 500, 503)))


def openapi_document() -> dict[str, Any]:
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Payments",
            "version": "2",
            "x-release": __version__,
            "description": "An organization's payments, page by page, newest first, as HAL.",
            "contact": {"name": "Documentation", "url": f"{EXAMPLE_URL}/docs/"},
        },
        "externalDocs": {"description": "Versioning, and changes of the API", "url": f"{EXAMPLE_URL}/docs/changes/"},
        "servers": [{"url": EXAMPLE_URL, "description": "This service."}],
        "tags": [{"name": "payments", "description": "Payments of the organization and mode of the API key."}],
        "paths": {
            "/v2/payments": {"get": list_operation()},
            "/v2/payments/changes": {"get": changes_operation()},
            "/v2/payments/totals": {"get": totals_operation()},
            "/v2/payments/{payment_id}": {"get": payment_operation()},
        },
        "components": {"schemas": schemas(), **CONTENTS["components"]},
    }
    return dict(portable(document))


def list_operation() -> dict[str, Any]:
    return {
        "operationId": "listPayments",
        "summary": "List payments",
        "description": "Payments, newest first by default, page by page.",
        **COMMON,
        "parameters": list_parameters(),
        "responses": responses("PaginatedPaymentList", "A page of payments.", errors=LIST_ERRORS),
    }


def changes_operation() -> dict[str, Any]:
    token = {
        "name": "from",
        "in": "query",
        "description": f"A token from a link, or `{NOW}`: the end of the feed. Default: its beginning.",
        "schema": {"type": "string", "pattern": TOKEN},
        "example": CONTENTS["changesLinks"]["later"]["href"].rpartition("=")[2],
    }
    errors = (*LIST_ERRORS, HTTPStatus.GONE)
    return {
        "operationId": "listPaymentChanges",
        "summary": "List changes",
        "description": "Payments in the order in which they were last created or changed, page by page.",
        **COMMON,
        "parameters": [limit_parameter(), token, PARAMETERS["IfNoneMatch"]],
        "responses": responses("PaginatedPaymentChangeList", "A page of payments.", errors=errors),
    }


def totals_operation() -> dict[str, Any]:
    filters = [filter_parameter(name, FILTERS[name]) for name in FILTER_NAMES]
    return {
        "operationId": "getPaymentTotals",
        "summary": "Get totals",
        "description": "Sums of payments by currency, for days of the organization's time zone.",
        **COMMON,
        "parameters": [*CONTENTS["totalsParameters"], *filters, PARAMETERS["IfNoneMatch"]],
        "responses": responses("PaymentTotals", "The totals.", errors=LIST_ERRORS),
    }


def payment_operation() -> dict[str, Any]:
    return {
        "operationId": "getPayment",
        "summary": "Get one payment",
        "description": "One payment.",
        **COMMON,
        "parameters": [PARAMETERS["PaymentId"], PARAMETERS["IfNoneMatch"]],
        "responses": responses("Payment", "The payment.", errors=(*LIST_ERRORS, HTTPStatus.NOT_FOUND)),
    }


def list_parameters() -> list[dict[str, Any]]:
    """Return the parameters in the order of links. Each has a form that most generated clients can send.

    Lists have OpenAPI's default style, which repeats the parameter. A bound of a range is a parameter of its own.
    """
    return [
        limit_parameter(),
        {
            "name": "from",
            "in": "query",
            "description": "The ID of the first payment of the page. Default: the first payment of the list.",
            "schema": {"type": "string", "pattern": PAYMENT_ID},
            "example": PAYMENT["id"],
        },
        {
            "name": "sort",
            "in": "query",
            "description": "Newest payments first (desc) or oldest first (asc).",
            "schema": {"type": "string", "enum": list(ORDERS), "default": "desc"},
            "example": "asc",
        },
        *(filter_parameter(name, filter_) for name, filter_ in FILTERS.items()),
        PARAMETERS["IfNoneMatch"],
    ]


def limit_parameter() -> dict[str, Any]:
    return {
        "name": "limit",
        "in": "query",
        "description": "The number of payments in a page.",
        "schema": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
        "example": 100,
    }


def filter_parameter(name: str, filter_: Filter) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "description": describe_filter(name, filter_),
        "schema": filter_.schema,
        "example": filter_.example,
    }


def describe_filter(name: str, filter_: Filter) -> str:
    effect = filter_.effect[0].upper() + filter_.effect[1:]
    forms = {"metadata": ". Each pair is a parameter: metadata=KEY:VALUE, or metadata[KEY]=VALUE for any key"}
    repeated = ", or in repeated parameters" if filter_.takes_list else ""
    return f"{effect}: {filter_.rule}{forms.get(name, repeated)}."


def responses(schema: str, description: str, *, errors: tuple[HTTPStatus, ...]) -> dict[str, Any]:
    content = {HAL: {"schema": reference("schemas", schema), "example": EXAMPLES[schema]}}
    headers = CONTENTS["components"]["responses"]["NotModified"]["headers"]
    return {
        "200": {"description": description, "headers": headers, "content": content},
        **{str(status.value): response(status) for status in sorted((HTTPStatus.NOT_MODIFIED, *errors))},
    }


def response(status: HTTPStatus) -> dict[str, str]:
    return reference("responses", status.phrase.replace(" ", ""))


def reference(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def schemas() -> dict[str, Any]:
    """Return the schemas of the record and its parts, of the page and of the errors, by name."""
    parts = json_schemas()
    payment = parts.pop("Record")
    required = [*payment["required"], "resource", "_links"]
    _, problems = msgspec.json.schema_components([Problem], ref_template=REFERENCE)
    components = {
        "Payment": {**payment, "title": "Payment", "required": required},
        **parts,
        "PaginatedPaymentList": page_schema("self", "documentation", optional=("previous", "next")),
        "PaginatedPaymentChangeList": page_schema("self", "later", "documentation", optional=("next",)),
        **problems,
    }
    described = {name: complete(schema, CONTENTS["descriptions"][name]) for name, schema in components.items()}
    return {**described, **CONTENTS["totalsSchemas"]}


def complete(schema: Mapping[str, Any], meanings: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the schema of an object with descriptions of its properties.

    It allows further members explicitly: without that, generated clients lose them, or refuse the response.
    """
    if "properties" not in schema:
        return schema
    properties = {
        name: {
            **complete(inner, meanings),
            "description": f"{': '.join(filter(None, [meanings[name], inner.get('description')]))}.",
        }
        for name, inner in schema["properties"].items()
    }
    return {"additionalProperties": True, **schema, "properties": properties}


def page_schema(*links: str, optional: Sequence[str]) -> Mapping[str, Any]:
    """Return the schema of a page with these links, and optionally with others."""
    payments = {"type": "array", "items": reference("schemas", "Payment")}
    return {
        "type": "object",
        "required": ["count", "_embedded", "_links"],
        "properties": {
            "count": {"type": "integer", "minimum": 0, "maximum": LIMIT_MAX},
            "_embedded": {"type": "object", "required": ["payments"], "properties": {"payments": payments}},
            "_links": {
                "type": "object",
                "required": list(links),
                "properties": {name: reference("schemas", "Link") for name in (*links, *optional)},
            },
        },
    }
