"""The OpenAPI 3.1 description of the API. Its schemas follow from the declaration of the record and of the filters.

`openapi.json` has the parts that are not declared elsewhere: meanings of properties, examples, headers and errors.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from payments import __version__
from payments.api.errors import Problem, title
from payments.api.parameters import LIMIT_DEFAULT, LIMIT_MAX, NOW
from payments.api.totals import FILTER_NAMES
from payments.hal import HAL
from payments.ingest.schema import IGNORED
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
    "PaymentImport": CONTENTS["import"],
    "Payment": PAYMENT,
}

# The errors that all operations have.
COMMON_ERRORS = tuple(map(HTTPStatus, (400, 401, 403, 405, 406, 429, 500, 503)))
IMPORT_ERRORS = tuple(map(HTTPStatus, (408, 411, 413, 415, 422)))


def openapi_document() -> dict[str, Any]:
    document = dict(CONTENTS["document"])
    document["info"] = {**document["info"], "x-release": __version__}
    document["paths"] = paths()
    document["components"] = {"schemas": schemas(), **CONTENTS["components"]}
    return dict(portable(document))


def paths() -> dict[str, Any]:
    """Return the operations of each path.

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
        "/v2/payments": read("PaginatedPaymentList", [limit, start, sort, *filters.values()]),
        "/v2/payments/changes": read("PaginatedPaymentChangeList", [limit, token], HTTPStatus.GONE),
        "/v2/payments/totals": read("PaymentTotals", totals),
        "/v2/payments/imports": {"post": operation("PaymentImport", IMPORT_ERRORS)},
        "/v2/payments/{payment_id}": read("Payment", [CONTENTS["paymentId"]], HTTPStatus.NOT_FOUND),
    }


def query_parameter(name: str, description: str, schema: Mapping[str, Any], example: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema, "example": example}


def read(schema: str, parameters: Sequence[Mapping[str, Any]], *errors: HTTPStatus) -> dict[str, Any]:
    """Return the operations of a path that is read. `errors` are those that not all operations have."""
    described = operation(schema, (HTTPStatus.NOT_MODIFIED, *errors))
    return {"get": {**described, "parameters": [*parameters, CONTENTS["ifNoneMatch"]]}}


def operation(schema: str, statuses: Sequence[HTTPStatus]) -> dict[str, Any]:
    """Return the operation whose response has this schema. `statuses` are those that not all operations have."""
    content = {HAL: {"schema": {"$ref": REFERENCE.format(name=schema)}, "example": EXAMPLES[schema]}}
    headers = CONTENTS["components"]["responses"]["NotModified"]["headers"]
    described = CONTENTS["operations"][schema]
    responses = {"200": {"headers": headers, **described["responses"]["200"], "content": content}}
    for status in sorted((*COMMON_ERRORS, *statuses)):
        responses[f"{status.value}"] = {"$ref": f"#/components/responses/{title(status).replace(' ', '')}"}
    return {**described, "responses": responses}


def describe_filter(name: str, filter_: Filter) -> str:
    effect = filter_.effect[0].upper() + filter_.effect[1:]
    forms = {"metadata": ". Each pair is a parameter: metadata=KEY:VALUE, or metadata[KEY]=VALUE for any key"}
    repeated = ", or in repeated parameters" if filter_.takes_list else ""
    return f"{effect}: {filter_.rule}{forms.get(name, repeated)}."


def schemas() -> dict[str, Any]:
    _, parts = msgspec.json.schema_components([Record, Details, Problem], ref_template=REFERENCE)
    record = parts.pop("Record")
    own = IGNORED.values()
    components = {
        "Payment": {**record, "title": "Payment", "required": [*record["required"], *own]},
        "PaymentInput": {
            **record,
            **CONTENTS["input"],
            "properties": {name: inner for name, inner in record["properties"].items() if name not in own},
        },
        **parts,
    }
    descriptions = CONTENTS["descriptions"]
    described = {
        name: complete(schema, descriptions[name.removesuffix("Input")]) for name, schema in components.items()
    }
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
