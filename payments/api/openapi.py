"""How the API describes itself (OpenAPI 3.1): the record's own schema, and every status that the contract knows."""

import re
from http import HTTPStatus
from typing import Any

import msgspec
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent

from payments.api.problems import Problem
from payments.api.renderers import ProblemRenderer
from payments.record import schemas

REF = "#/components/schemas/{name}"

HEADERS = {
    HTTPStatus.UNAUTHORIZED: ("WWW-Authenticate", "What is missing or wrong (RFC 6750)."),
    HTTPStatus.METHOD_NOT_ALLOWED: ("Allow", "The methods that are answered."),
    HTTPStatus.TOO_MANY_REQUESTS: ("Retry-After", "Seconds after which to ask again."),
    HTTPStatus.SERVICE_UNAVAILABLE: ("Retry-After", "Seconds after which to ask again."),
}
PROBLEMS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_ACCEPTABLE,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)


class OperationSchema(AutoSchema):
    """What a view of this API does, in the view's own words."""

    view: Any

    def get_operation_id(self) -> str:
        return str(self.view.operation_id)

    def get_summary(self) -> str:
        return str(self.view.summary)

    def get_tags(self) -> list[str]:
        return ["payments"]


class BearerScheme(OpenApiAuthenticationExtension):
    """The key, as RFC 6750 has it."""

    target_class = "payments.access.authentication.BearerAuthentication"
    match_subclasses = True
    name = "apiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API key: `live_...` or `test_...`."}


class PaymentSchema(OpenApiSerializerExtension):
    """The record, from the declaration that the import reads it by."""

    target_class = "payments.api.serializers.PaymentSerializer"

    def get_name(self, auto_schema: AutoSchema, direction: str) -> str:
        return "Payment"

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        parts = schemas()
        payment = parts.pop("Record")
        for name, schema in parts.items():
            auto_schema.registry.register_on_missing(
                ResolvedComponent(name=name, type=ResolvedComponent.SCHEMA, schema=schema, object=name)
            )
        return {**payment, "title": "Payment", "required": [*payment["required"], "resource", "_links"]}


def complete(result: dict[str, Any], **_generation: Any) -> dict[str, Any]:
    """Add what holds for every operation: 304 and the problems. A postprocessing hook of drf-spectacular."""
    _, components = msgspec.json.schema_components([Problem], ref_template=REF)
    result["components"]["schemas"].update(components)
    for path, operations in result["paths"].items():
        for operation in operations.values():
            operation["responses"]["304"] = {"description": "What If-None-Match names is still what would be given."}
            for status in PROBLEMS:
                if status != HTTPStatus.NOT_FOUND or "{" in path:
                    operation["responses"][str(status.value)] = problem_response(status)
            operation["responses"] = dict(sorted(operation["responses"].items()))
    return dict(with_javascript_patterns(result))


def problem_response(status: HTTPStatus) -> dict[str, Any]:
    response: dict[str, Any] = {
        "description": status.phrase,
        "content": {ProblemRenderer.media_type: {"schema": {"$ref": REF.format(name="Problem")}}},
    }
    if status in HEADERS:
        name, description = HEADERS[status]
        response["headers"] = {name: {"description": description, "schema": {"type": "string"}}}
    return response


def with_javascript_patterns(value: Any) -> Any:
    r"""Return `value`, its patterns as ECMA-262 has them. Ours end in `\Z`: behind Python's `$` may be a line feed."""
    if isinstance(value, dict):
        return {
            key: re.sub(r"\\Z$", "$", re.sub(r"^\\A", "^", inner))
            if key == "pattern" and isinstance(inner, str)
            else with_javascript_patterns(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [with_javascript_patterns(inner) for inner in value]
    return value
