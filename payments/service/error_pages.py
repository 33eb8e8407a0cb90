"""Responses to errors outside of the API's views: below `/v2` a problem, elsewhere a page or its text.

A browser gets a page with a way back, another client the text alone: the export script shows it beside its button. The
page of an unknown address is the same for all clients. A page needs neither the database nor a session.
"""

import os
import sys
from http import HTTPStatus
from typing import Any

from django.contrib.sessions.exceptions import SessionInterrupted
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.debug import ExceptionReporter
from rest_framework.exceptions import NotFound

from payments.api import request_ids
from payments.api.errors import DETAILS, MALFORMED, RETRY_HEADERS, Unavailable, describe_refused_host, problem_page
from payments.runtime.database_errors import is_outage
from payments.service.logs import redacted


def is_api(path: str) -> bool:
    return f"{path}/".startswith("/v2/")


class DebugReport(ExceptionReporter):
    """Django's page about an error, for developers, without the secrets of the process.

    `runserver` adds the environment to the variables of a request, and the variables of a function that connects to the
    database contain its password.
    """

    def get_traceback_data(self) -> dict[str, Any]:
        data = super().get_traceback_data()
        variables = data["request_meta"]
        data["request_meta"] = {name: variables[name] for name in variables if name not in os.environ}
        for frame in data["frames"]:
            frame["vars"] = [(name, redacted(value)) for name, value in frame["vars"]]
        return data


def error_page(
    request: HttpRequest, status: HTTPStatus, text: str, *, headers: dict[str, str] | None = None
) -> HttpResponse:
    """Return a problem below `/v2`; elsewhere a page, or its text for a client that does not accept HTML by name."""
    if is_api(request.path_info):
        return problem_page(request, status, text, headers=headers)
    fields = {**(headers or {}), "Vary": "Accept"}
    if "text/html" not in request.META.get("HTTP_ACCEPT", ""):
        return HttpResponse(text, content_type="text/plain", status=status, headers=fields)
    return html_page(request, status, text, headers=fields)


def html_page(
    request: HttpRequest, status: HTTPStatus, text: str, *, headers: dict[str, str] | None = None
) -> HttpResponse:
    context = {
        "title": status.phrase.capitalize(),
        "status": status.value,
        "text": text,
        "can_retry": status == HTTPStatus.SERVICE_UNAVAILABLE and request.method == "GET",
        "request_id": request_ids.assign(request.META),
    }
    return HttpResponse(render_to_string("payments/error.html", context), status=status, headers=headers)


# Django calls the following functions (payments_site/urls.py, and the setting CSRF_FAILURE_VIEW).


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    detail = MALFORMED
    if isinstance(exception, DisallowedHost):
        detail = describe_refused_host(request.META)
    elif isinstance(exception, SessionInterrupted):
        detail = "Your session has ended: you have logged out in another window. Log in again."
    return error_page(request, HTTPStatus.BAD_REQUEST, detail)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request.path_info):
        return problem_page(request, HTTPStatus.FORBIDDEN, "Permission denied.")
    text = "This account has no permission for this page or action. An administrator can grant it."
    return error_page(request, HTTPStatus.FORBIDDEN, text)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    text = "The form has expired, or the browser refuses cookies. Go back, reload the page and send the form again."
    return error_page(request, HTTPStatus.FORBIDDEN, text)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request.path_info):
        return problem_page(request, HTTPStatus.NOT_FOUND, DETAILS[NotFound])
    # No script of our pages reads this response, so it is a page for all clients.
    return html_page(request, HTTPStatus.NOT_FOUND, "There is no page at this address. Check the address.")


def server_error(request: HttpRequest) -> HttpResponse:
    if is_outage(sys.exception()):
        return unavailable(request)
    text = "An internal error occurred. The service's log has the details."
    return error_page(request, HTTPStatus.INTERNAL_SERVER_ERROR, text)


def unavailable(request: HttpRequest) -> HttpResponse:
    return error_page(request, HTTPStatus.SERVICE_UNAVAILABLE, Unavailable.default_detail, headers=RETRY_HEADERS)


def too_many_pages(request: HttpRequest) -> HttpResponse:
    """Return 503: requests for pages occupy their share of the threads."""
    text = "The service is busy. Try again in a second."
    return error_page(request, HTTPStatus.SERVICE_UNAVAILABLE, text, headers=RETRY_HEADERS)
