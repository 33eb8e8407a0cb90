"""Responses to errors outside of the API's views: below `/v2` a problem, elsewhere Django's error page."""

import sys
from http import HTTPStatus

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views import defaults

from payments.api.errors import (
    RETRY_SECONDS,
    Unavailable,
    render_problem,
)
from payments.api.hosts import MALFORMED, describe_refused_host
from payments.api.problems import problem
from payments.links import Links
from payments.runtime.database_errors import is_outage


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    is_host = isinstance(exception, DisallowedHost)
    detail = describe_refused_host(request.META) if is_host else MALFORMED
    if is_api(request.path_info):
        return problem_page(request, HTTPStatus.BAD_REQUEST, detail)
    if is_host:
        return HttpResponse(detail, content_type="text/plain", status=HTTPStatus.BAD_REQUEST)
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api(request.path_info):
        return problem_page(request, HTTPStatus.FORBIDDEN, "Permission denied.")
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api(request.path_info):
        return api_not_found(request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    if is_outage(sys.exception()):
        return unavailable(request)
    if is_api(request.path_info):
        detail = "An internal error occurred. The service's log has the details."
        return problem_page(request, HTTPStatus.INTERNAL_SERVER_ERROR, detail)
    return defaults.server_error(request)


def unavailable(request: HttpRequest) -> HttpResponse:
    """Return 503: the database is unavailable."""
    status, detail = HTTPStatus.SERVICE_UNAVAILABLE, Unavailable.default_detail
    headers = {"Retry-After": str(RETRY_SECONDS)}
    if is_api(request.path_info):
        return render_problem(problem(request, status, detail), headers=headers)
    return HttpResponse(detail, status=status, headers=headers)


def too_many_pages() -> HttpResponse:
    """Return 503: requests for pages occupy their share of the threads."""
    headers = {"Retry-After": str(RETRY_SECONDS), "Cache-Control": "no-store"}
    detail = "The service is busy. Try again in a second."
    return HttpResponse(detail, "text/plain", HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)


def api_not_found(request: HttpRequest) -> HttpResponseBase:
    """Return 404 for a path below `/v2` without a view. It is a view, so that the response is the same with DEBUG."""
    try:
        Links.of(request)
    except DisallowedHost as error:
        return bad_request(request, error)
    return problem_page(request, HTTPStatus.NOT_FOUND, "Not found. Check the path and the ID.")


def is_api(path: str) -> bool:
    return f"{path}/".startswith("/v2/")


def problem_page(request: HttpRequest, status: HTTPStatus, detail: str) -> HttpResponse:
    return render_problem(problem(request, status, detail))
