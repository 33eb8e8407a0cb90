"""The errors of the API, as problem responses (RFC 9457), also to requests that reach no view."""

import logging
import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost, SuspiciousOperation
from django.db import connection
from django.http import HttpRequest, HttpResponse
from msgspec import UNSET, Struct, UnsetType
from msgspec.json import encode
from rest_framework import exceptions
from rest_framework.renderers import BrowsableAPIRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from payments.api import request_ids
from payments.api.links import HOST_LENGTH_MAX, Links
from payments.database.migration_state import NOT_MIGRATED, is_unmigrated
from payments.hal import HTML, PROBLEM, Link
from payments.runtime.circuit_breaker import CircuitOpen
from payments.runtime.database_errors import is_outage
from payments.runtime.shares import NoPlace, NoThread

RETRY_SECONDS = 1
NOT_STORED = {"Cache-Control": "no-store"}
RETRY_HEADERS = {"Retry-After": str(RETRY_SECONDS)}  # of a response with 503

# A name or an address, as ALLOWED_HOSTS can contain it, and a port.
HOST = re.compile(r"([a-z0-9.-]+|\[[0-9a-f.]*:[0-9a-f:.]+\])(:[0-9]+)?")

NOT_ALLOWED = "This host is not allowed. Check the URL, or add the host to ALLOWED_HOSTS."
MALFORMED = "This request is malformed. Check the Host header and the URL."

# Python has these titles of RFC 9110 only since version 3.13.
TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}

logger = logging.getLogger(__name__)


class ProblemLinks(Struct, frozen=True):
    """The links of an error."""

    documentation: Link


class Finding(Struct, frozen=True):
    """An error of a record in the body: its line, and the number of the record among all."""

    line: int
    record: int | UnsetType
    field: str | UnsetType
    detail: str


class Problem(Struct, kw_only=True, frozen=True, rename={"links": "_links", "request_id": "requestId"}):
    """An error, for programs and humans. `field` names the invalid parameter, `requestId` the request in the log.

    `errors` are those of the records of an import.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | UnsetType = UNSET
    errors: Sequence[Finding] | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    links: ProblemLinks


def problem(
    request: HttpRequest | Request,
    status: int,
    detail: str,
    *,
    field: str | None = None,
    errors: Sequence[Finding] | None = None,
) -> Problem:
    """Return the body of an error response.

    It repeats nothing that the client sent, except the request ID, and short names of parameters and members.
    """
    return Problem(
        title=title(status),
        status=status,
        detail=detail,
        field=field or UNSET,
        errors=errors or UNSET,
        request_id=request.META.get(request_ids.ENVIRON_KEY, UNSET),
        links=ProblemLinks(documentation=Link(href=Links.of_error(request).section("errors"), type=HTML)),
    )


def title(status: int) -> str:
    return TITLES.get(status) or HTTPStatus(status).phrase


class InvalidParameter(exceptions.APIException):
    """A query parameter is unknown, repeated or invalid. `field` is its name if the response may repeat it.

    `start` is the ID in the parameter `from`, if it has not been looked up: an unknown ID is the first error then.
    """

    status_code = HTTPStatus.BAD_REQUEST

    def __init__(self, detail: str, *, field: str | None, start: str | None = None) -> None:
        super().__init__(detail)
        self.field = field
        self.start = start


class LostChanges(exceptions.APIException):
    """The database does not know the newest change that the client has seen, or not all changes since."""

    status_code = HTTPStatus.GONE
    default_detail = (
        "The service does not know all changes since this token. Discard your copy, and read the changes again from "
        "the beginning, without from."
    )


class UnreadableRequest(exceptions.APIException):
    """Django refuses the request, for example because its host is not allowed."""

    status_code = HTTPStatus.BAD_REQUEST
    default_detail = MALFORMED


class Unavailable(exceptions.APIException):
    """The database is unavailable. The client can try again."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = "The service is unavailable. Try again later."
    headers = RETRY_HEADERS


class Unmigrated(Unavailable):
    """The database lacks migrations. Only a developer gets this response."""

    default_detail = NOT_MIGRATED


class QueryTimeout(Unavailable):
    """A query with filters exceeded its time limit."""

    default_detail = (
        "The query timed out. Narrow it: send createdAt[gte] and createdAt[lt], for example for one month or one day."
    )
    field = "createdAt"


class FiguresNotReady(Unavailable):
    """The totals of some days could not be computed in time. The next request computes more of them."""

    default_detail = "The figures are being computed. Repeat the request after the seconds in Retry-After."


class TooManyFilters(exceptions.Throttled):
    """Requests with filters of the same key use their share of the threads."""

    default_detail = "Too many slow requests of this key at the same time. Send fewer at once, or narrow their period."


# The details of the framework's exceptions may repeat what the client sent.
DETAILS: dict[type[Exception], str] = {
    exceptions.NotAuthenticated: "Send an API key: Authorization: Bearer <API_KEY>.",
    exceptions.NotAcceptable: "The Accept header excludes application/hal+json.",
    exceptions.NotFound: "Not found. Check the path and the ID.",
    exceptions.Throttled: "Too many requests. Wait for the number of seconds in Retry-After.",
}


def problem_response(exception: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """Return the response to a request that ended in `exception`. DRF's EXCEPTION_HANDLER.

    Returns None for a bug, so that the handler or Django logs it and responds.
    """
    if is_outage(exception):
        if not isinstance(exception, CircuitOpen):
            logger.error("The database %s failed: %s", connection.settings_dict["NAME"], exception)
        exception = Unmigrated() if settings.DEBUG and is_unmigrated(exception) else Unavailable()
    elif isinstance(exception, NoThread):
        exception = Unavailable()
    elif isinstance(exception, NoPlace):
        exception = TooManyFilters()
    elif isinstance(exception, DisallowedHost):
        exception = UnreadableRequest(describe_refused_host(context["request"].META))
    elif isinstance(exception, SuspiciousOperation):
        exception = UnreadableRequest()
    if not isinstance(exception, exceptions.APIException):
        return None
    request: Request = context["request"]
    detail = DETAILS.get(type(exception), str(exception.detail))
    more = {name: getattr(exception, name, None) for name in ("field", "errors")}
    body = problem(request, exception.status_code, detail, **more)
    headers = error_headers(exception)
    if isinstance(getattr(request, "accepted_renderer", None), BrowsableAPIRenderer):
        return Response(body, status=body.status, headers=headers)
    return render_problem(body, headers=headers)


def render_problem(body: Problem, *, headers: dict[str, str] | None = None) -> HttpResponse:
    return HttpResponse(encode(body), status=body.status, headers=headers, content_type=PROBLEM)


def error_headers(exception: exceptions.APIException) -> dict[str, str]:
    """Return the headers that RFC 6750 (section 3) and RFC 9110 (section 10.2.3) require. No client keeps an error."""
    headers = {**NOT_STORED, **getattr(exception, "headers", {})}
    if challenge := getattr(exception, "auth_header", None):
        is_invalid_token = isinstance(exception, exceptions.AuthenticationFailed) and challenge.startswith("Bearer")
        headers["WWW-Authenticate"] = f'{challenge}, error="invalid_token"' if is_invalid_token else challenge
    if isinstance(exception, exceptions.Throttled):
        headers["Retry-After"] = str(math.ceil(getattr(exception, "wait", None) or RETRY_SECONDS))
    return headers


def describe_refused_host(variables: Mapping[str, Any]) -> str:
    """Return the text of the error for a refused host. Log a well-formed host, because it may be the service's own.

    A malformed host is not logged: ALLOWED_HOSTS cannot allow it, and it can contain any characters.
    """
    host = find_host(variables)
    match = HOST.fullmatch(host.lower()) if len(host) <= HOST_LENGTH_MAX else None
    name = match[1].removesuffix(".") if match else ""
    if not name:
        return MALFORMED
    logger.warning("Refused a request to the host %s. If it is this service, add it to ALLOWED_HOSTS.", name)
    return NOT_ALLOWED


def find_host(variables: Mapping[str, Any]) -> str:
    """Return the host in the variables of a WSGI request, as Django reads it."""
    if settings.USE_X_FORWARDED_HOST and "HTTP_X_FORWARDED_HOST" in variables:
        return str(variables["HTTP_X_FORWARDED_HOST"])
    return str(variables.get("HTTP_HOST", variables.get("SERVER_NAME", "")))


def problem_page(
    request: HttpRequest, status: HTTPStatus, detail: str, *, headers: dict[str, str] | None = None
) -> HttpResponse:
    request_id = request_ids.assign(request.META)
    fields = {**NOT_STORED, **(headers or {}), request_ids.HEADER: request_id}
    return render_problem(problem(request, status, detail), headers=fields)
