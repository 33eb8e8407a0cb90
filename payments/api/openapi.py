"""The OpenAPI 3.1 description of the API. Its schemas follow from the declaration of the record and of the filters.

`openapi.json` has the parts that are not declared elsewhere: meanings of properties, examples, headers and errors.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from payments import __version__
from payments.api.errors import Problem
from payments.api.parameters import LIMIT_DEFAULT, LIMIT_MAX, NOW
from payments.api.totals import FILTER_NAMES
from payments.hal import HAL
from payments.listing.filter_types import Filter
from payments.listing.filters import FILTERS, ORDERS
from payments.listing.tokens import TOKEN
from payments.models import PAYMENT_ID
from payments.record import Details, Record, portable

REFERENCE = "#/components/schemas/{name}"

# Stands for the service's address, as in the Markdown pages. The view replaces it.
EXAMPLE_URL = "https://pay.example"

CONTENTS: Any = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes())
PAGE: Mapping[str, Any] = CONTENTS["page"]
[PAYMENT] = PAGE["_embedded"]["payments"]
EXAMPLES = {
    "PaginatedPaymentList": PAGE,
    "PaginatedPaymentChangeList": {**PAGE, "_links": CONTENTS["changesLinks"]},
    "PaymentTotals": CONTENTS["totals"],
    "Payment": PAYMENT,
}

# The errors that all operations have.
LIST_ERRORS = tuple(map(HTTPStatus, (400, 401, 405, 406, 429, 500, 503)))


def openapi_document() -> dict[str, Any]:
    document = dict(CONTENTS["document"])
    document["info"] = {**document["info"], "x-release": __version__}
    document["paths"] = {path: {"get": operation} for path, operation in operations().items()}
    document["components"] = {"schemas": schemas(), **CONTENTS["components"]}
    return dict(portable(document))


def operations() -> dict[str, Any]:
    """Return the operation of each path.

    The parameters of a list have the order of links, and a form that most generated clients can send. Parameters with
    several values have OpenAPI's default style, which repeats the parameter. A bound of a range is a parameter of its
    own.
    """
    size = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT}
    limit = query_parameter("limit", "The number of payments in a page.", size, 100)
    start_text = "The ID of the first payment of the page. Default: the first payment of the list."
    start = query_parameter("from", start_text, {"type": "string", "pattern": PAYMENT_ID}, PAYMENT["id"])
    order = {"type": "string", "enum": list(ORDERS), "default": "desc"}
    sort = query_parameter("sort", "Newest payments first (desc) or oldest first (asc).", order, "asc")
    token_text = f"A token from a link, or `{NOW}`: the end of the feed. Default: its beginning."
    example = CONTENTS["changesLinks"]["later"]["href"].rpartition("=")[2]
    token = query_parameter("from", token_text, {"type": "string", "pattern": TOKEN}, example)
    filters = {
        name: query_parameter(name, describe_filter(name, filter_), filter_.schema, filter_.example)
        for name, filter_ in FILTERS.items()
    }
    totals = [*CONTENTS["totalsParameters"], *(filters[name] for name in FILTER_NAMES)]
    return {
        "/v2/payments": operation("PaginatedPaymentList", [limit, start, sort, *filters.values()]),
        "/v2/payments/changes": operation("PaginatedPaymentChangeList", [limit, token], HTTPStatus.GONE),
        "/v2/payments/totals": operation("PaymentTotals", totals),
        "/v2/payments/{payment_id}": operation("Payment", [CONTENTS["paymentId"]], HTTPStatus.NOT_FOUND),
    }


def query_parameter(name: str, description: str, schema: Mapping[str, Any], example: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema, "example": example}


def operation(schema: str, parameters: Sequence[Mapping[str, Any]], *errors: HTTPStatus) -> dict[str, Any]:
    """Return the operation whose response has this schema. `errors` are those that not all operations have."""
    content = {HAL: {"schema": {"$ref": REFERENCE.format(name=schema)}, "example": EXAMPLES[schema]}}
    headers = CONTENTS["components"]["responses"]["NotModified"]["headers"]
    described = CONTENTS["operations"][schema]
    responses = {"200": {**described["responses"]["200"], "headers": headers, "content": content}}
    for status in sorted((HTTPStatus.NOT_MODIFIED, *LIST_ERRORS, *errors)):
        responses[f"{status.value}"] = {"$ref": f"#/components/responses/{status.phrase.replace(' ', '')}"}
    return {**described, "parameters": [*parameters, CONTENTS["ifNoneMatch"]], "responses": responses}


def describe_filter(name: str, filter_: Filter) -> str:
    effect = filter_.effect[0].upper() + filter_.effect[1:]
    forms = {"metadata": ". Each pair is a parameter: metadata=KEY:VALUE, or metadata[KEY]=VALUE for any key"}
    repeated = ", or in repeated parameters" if filter_.takes_list else ""
    return f"{effect}: {filter_.rule}{forms.get(name, repeated)}."


def schemas() -> dict[str, Any]:
    """Return the schemas of the record and its parts, of the errors and of pages, by name."""
    _, parts = msgspec.json.schema_components([Record, Details, Problem], ref_template=REFERENCE)
    payment = parts.pop("Record")
    required = [*payment["required"], "resource", "_links"]
    components = {"Payment": {**payment, "title": "Payment", "required": required}, **parts}
    described = {name: complete(schema, CONTENTS["descriptions"][name]) for name, schema in components.items()}
    return {**described, **CONTENTS["schemas"]}


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
