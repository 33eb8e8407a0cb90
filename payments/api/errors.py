"""The errors of the API's views, and the handler that turns exceptions into problem responses."""

import logging
import math
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost, SuspiciousOperation
from django.db import connection
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.renderers import BrowsableAPIRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from payments.api.hosts import MALFORMED, describe_refused_host
from payments.api.problems import Problem, problem
from payments.api.renderers import ProblemRenderer
from payments.database.migration_state import NOT_MIGRATED, is_unmigrated
from payments.runtime.circuit_breaker import CircuitOpen
from payments.runtime.database_errors import is_outage
from payments.runtime.shares import NoPlace, NoThread

RETRY_SECONDS = 1
NOT_STORED = {"Cache-Control": "no-store"}

logger = logging.getLogger(__name__)


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
    wait = RETRY_SECONDS


class Unmigrated(Unavailable):
    """The database lacks migrations. Only a developer gets this response."""

    default_detail = NOT_MIGRATED


class QueryTimeout(Unavailable):
    """A query with filters exceeded its time limit."""

    default_detail = (
        "The query timed out. Narrow it: send createdAt[gte] and createdAt[lt], for example for one month or one day."
    )
    field = "createdAt"


class TooManyFilters(exceptions.Throttled):
    """Requests with filters of the same key use their share of the threads."""

    default_detail = "Too many requests with filters at the same time. Send fewer at once, or narrow createdAt."


# The details of the framework's exceptions may repeat what the client sent.
DETAILS: dict[type[Exception], str] = {
    exceptions.NotAuthenticated: "Send an API key: Authorization: Bearer <API_KEY>.",
    exceptions.MethodNotAllowed: "Only GET, HEAD and OPTIONS are allowed.",
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
    body = problem(request, exception.status_code, detail, field=getattr(exception, "field", None))
    headers = error_headers(exception)
    if isinstance(getattr(request, "accepted_renderer", None), BrowsableAPIRenderer):
        return Response(body, status=body.status, headers=headers)
    return render_problem(body, headers=headers)


def render_problem(body: Problem, *, headers: dict[str, str] | None = None) -> HttpResponse:
    """Return a response with the problem as JSON."""
    content = ProblemRenderer().render(body)
    return HttpResponse(content, status=body.status, headers=headers, content_type=ProblemRenderer.media_type)


def error_headers(exception: exceptions.APIException) -> dict[str, str]:
    """Return the headers that RFC 6750 (section 3) and RFC 9110 (section 10.2.3) require. No client keeps an error."""
    headers = dict(NOT_STORED)
    if challenge := getattr(exception, "auth_header", None):
        is_invalid_token = isinstance(exception, exceptions.AuthenticationFailed) and challenge.startswith("Bearer")
        headers["WWW-Authenticate"] = f'{challenge}, error="invalid_token"' if is_invalid_token else challenge
    if isinstance(exception, exceptions.Throttled | Unavailable):
        headers["Retry-After"] = str(math.ceil(getattr(exception, "wait", None) or RETRY_SECONDS))
    return headers
