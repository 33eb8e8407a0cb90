"""Middleware of pages. The API's views, and the handler, do the same for the API."""

import logging
import time
from collections.abc import Callable
from http import HTTPStatus

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from payments.api import request_ids
from payments.api.links import Links
from payments.conf import conf
from payments.database.migration_state import NOT_MIGRATED, is_unmigrated
from payments.runtime.process import process
from payments.service.error_pages import bad_request, error_page

access_logger = logging.getLogger("payments_site.access")


class Middleware:
    """Passes each request on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)


class Observation(Middleware):
    """Gives each request an ID, and reports it to the hooks and the access log. It is the outermost middleware."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return observe(request, self.get_response)


def observe(request: HttpRequest, respond: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
    """Return the response with the request's ID, call the hooks, and write the access log if it is enabled."""
    started_at = time.monotonic()
    request_id = request_ids.assign(request.META)
    response = process.hooks.respond(request, respond) if process.hooks.registered else respond(request)
    response.headers.setdefault(request_ids.HEADER, request_id)
    if conf.ACCESS_LOG:
        milliseconds = (time.monotonic() - started_at) * 1000
        arguments = (request.method, request.path, response.status_code, milliseconds)
        access_logger.info("%s %.500s %s %.1f ms", *arguments)
    return response


class HostCheck(Middleware):
    """Refuses a host that is not in ALLOWED_HOSTS. In development, Django would show its own page for errors."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            Links.of(request)
        except DisallowedHost as error:
            return bad_request(request, error)
        return self.get_response(request)


class MigrationPage(Middleware):
    """For development: says which command to run, instead of Django's page about a missing table."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_unmigrated(exception):
            return None
        return error_page(request, HTTPStatus.SERVICE_UNAVAILABLE, NOT_MIGRATED)
