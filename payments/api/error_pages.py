"""Problems for requests below `/v2` that no view of the API handles."""

from http import HTTPStatus

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import NotFound

from payments.api import request_ids
from payments.api.errors import DETAILS, NOT_STORED, RETRY_SECONDS, render_problem
from payments.api.hosts import describe_refused_host
from payments.api.links import Links
from payments.api.problems import problem

# The headers of a response with 503.
RETRY_HEADERS = {"Retry-After": str(RETRY_SECONDS)}


def is_api(path: str) -> bool:
    return f"{path}/".startswith("/v2/")


def problem_page(
    request: HttpRequest, status: HTTPStatus, detail: str, *, headers: dict[str, str] | None = None
) -> HttpResponse:
    request_id = request_ids.assign(request.META)
    fields = {**NOT_STORED, **(headers or {}), request_ids.HEADER: request_id}
    return render_problem(problem(request, status, detail), headers=fields)


@csrf_exempt  # so that POST gets 404, not a CSRF error
def api_not_found(request: HttpRequest) -> HttpResponse:
    """Return 404 for a path below `/v2` without a view. It is a view, so that the response is the same with DEBUG."""
    try:
        Links.of(request)
    except DisallowedHost:
        return problem_page(request, HTTPStatus.BAD_REQUEST, describe_refused_host(request.META))
    return problem_page(request, HTTPStatus.NOT_FOUND, DETAILS[NotFound])
