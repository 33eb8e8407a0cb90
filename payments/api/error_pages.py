"""Answers to what fails outside of any API view: below `/v2` a problem, elsewhere Django's page for people."""

import sys
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views import defaults

from payments.api.errors import RETRY_SECONDS, OutageResponse, Unavailable
from payments.api.problems import problem
from payments.api.renderers import ProblemRenderer
from payments.links import Addresses
from payments.runtime.database_errors import is_outage


class OutagePage(OutageResponse, HttpResponse):
    """A page in response to a database outage."""


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api(request.path_info):
        return problem_page(request, HTTPStatus.BAD_REQUEST, "This request cannot be read.")
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api(request.path_info):
        return problem_page(request, HTTPStatus.FORBIDDEN, "This is not allowed.")
    return defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api(request.path_info):
        return nothing_here(request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    if is_outage(sys.exception()):
        return unavailable(request)
    if is_api(request.path_info):
        detail = "The service failed. Its log tells its operators why."
        return problem_page(request, HTTPStatus.INTERNAL_SERVER_ERROR, detail)
    return defaults.server_error(request)


def unavailable(request: HttpRequest) -> HttpResponse:
    """Answer while the database does not; it is worth asking again."""
    status, detail = HTTPStatus.SERVICE_UNAVAILABLE, str(Unavailable.default_detail)
    if is_api(request.path_info):
        content = ProblemRenderer().render(problem(request, status, detail))
        response = OutagePage(content, status=status, content_type=ProblemRenderer.media_type)
    else:
        response = OutagePage(detail, status=status)
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response


def nothing_here(request: HttpRequest) -> HttpResponse:
    """Answer for the paths below `/v2` that have no view; a view itself, so that development answers the same."""
    Addresses.of(request)  # a host that is not ours is refused here as anywhere
    return problem_page(request, HTTPStatus.NOT_FOUND, "There is nothing here.")


def is_api(path: str) -> bool:
    return f"{path}/".startswith("/v2/")


def problem_page(request: HttpRequest, status: HTTPStatus, detail: str) -> HttpResponse:
    body = problem(request, status, detail)
    return HttpResponse(ProblemRenderer().render(body), status=status, content_type=ProblemRenderer.media_type)
