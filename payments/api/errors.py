"""What can go wrong in a view, and the answer to it."""

import logging
import math
from http import HTTPStatus
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db import connection
from rest_framework import exceptions
from rest_framework.renderers import BrowsableAPIRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from payments.api.problems import problem
from payments.api.renderers import ProblemRenderer
from payments.runtime.database_errors import is_outage

RETRY_SECONDS = 1

logger = logging.getLogger(__name__)


class InvalidParameter(exceptions.APIException):
    """A parameter that is unknown, given twice, or of a value that it cannot have."""

    status_code = HTTPStatus.BAD_REQUEST

    def __init__(self, detail: str, *, field: str | None) -> None:
        super().__init__(detail)
        self.field = field


class Unreadable(exceptions.APIException):
    """A request that Django itself will not read: one to a host that is not ours, say."""

    status_code = HTTPStatus.BAD_REQUEST
    default_detail = "This request cannot be read."


class Unavailable(exceptions.APIException):
    """The database does not answer, or cannot; it is worth asking again."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = "The service is not available just now. Try again."
    wait = RETRY_SECONDS


class TooWide(Unavailable):
    """What was asked for could not be found in time: too much lies between the payments that match."""

    default_detail = "What matches could not be found in time. Narrow createdAt: give it two ends, or closer ones."
    field = "createdAt"


class OutageResponse:
    """Marks a response to a database outage. After a slow one the handler fails fast (service/handler.py)."""


class OutageProblem(OutageResponse, Response):
    """A problem in response to a database outage."""


# What the framework says of its own exceptions repeats what the client sent.
DETAILS: dict[type[Exception], str] = {
    exceptions.NotAuthenticated: "An API key is needed: Authorization: Bearer <API_KEY>.",
    exceptions.MethodNotAllowed: "Only GET, HEAD and OPTIONS are answered here.",
    exceptions.NotAcceptable: "The answer comes as application/hal+json, which the Accept header leaves out.",
    exceptions.NotFound: "There is nothing here.",
    exceptions.Throttled: "There were too many requests. Retry-After says when to go on.",
}


def problem_response(exception: Exception, context: dict[str, Any]) -> Response | None:
    """Return the answer to a request that `exception` ended; None where it is a bug. DRF's EXCEPTION_HANDLER."""
    if is_outage(exception):
        logger.error("The database %s failed: %s", connection.settings_dict["NAME"], exception)
        exception = Unavailable()
    elif isinstance(exception, SuspiciousOperation):
        exception = Unreadable()
    if not isinstance(exception, exceptions.APIException):
        return None
    request: Request = context["request"]
    if not isinstance(getattr(request, "accepted_renderer", None), BrowsableAPIRenderer):
        request.accepted_renderer = ProblemRenderer()
        request.accepted_media_type = ProblemRenderer.media_type
    response_class = OutageProblem if type(exception) is Unavailable else Response
    return response_class(
        problem(
            request,
            exception.status_code,
            DETAILS.get(type(exception), str(exception.detail)),
            field=getattr(exception, "field", None),
        ),
        status=exception.status_code,
        headers=headers(exception),
    )


def headers(exception: exceptions.APIException) -> dict[str, str]:
    """Return what RFC 6750 (3) and RFC 9110 (10.2.3) ask for beside the body."""
    found = {}
    if challenge := getattr(exception, "auth_header", None):
        refused = isinstance(exception, exceptions.AuthenticationFailed) and challenge.startswith("Bearer")
        found["WWW-Authenticate"] = f'{challenge}, error="invalid_token"' if refused else challenge
    if isinstance(exception, exceptions.Throttled | Unavailable):
        found["Retry-After"] = str(math.ceil(getattr(exception, "wait", None) or RETRY_SECONDS))
    return found
