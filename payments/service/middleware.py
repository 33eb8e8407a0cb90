"""Middleware of pages. The API's views, and the handler, do the same for the API."""

from collections.abc import Callable
from http import HTTPStatus

from django.contrib.sessions.exceptions import SessionInterrupted
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from payments.api.links import Links
from payments.database.migration_state import NOT_MIGRATED, is_unmigrated
from payments.runtime.database_errors import is_outage
from payments.service.error_pages import bad_request, error_page
from payments.service.handler import observe


class Observation:
    """Gives each request an ID, and reports it to the hooks and the access log. It is the outermost middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return observe(request, self.get_response)


class HostCheck(MiddlewareMixin):
    """Refuses a host that is not in ALLOWED_HOSTS. In development, Django would show its own page for errors."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        try:
            Links.of(request)
        except DisallowedHost as error:
            return bad_request(request, error)
        return None


class Sessions(SessionMiddleware):
    """Django's sessions. Django mistakes an outage of the database for a session that another request has deleted."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        try:
            return super().process_response(request, response)
        except SessionInterrupted as interruption:
            failed_update = interruption.__context__
            error = failed_update and failed_update.__context__
            if error is None or not is_outage(error):
                raise
            raise error from None


class MigrationPage(MiddlewareMixin):
    """For development: says which command to run, instead of Django's page about a missing table."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_unmigrated(exception):
            return None
        return error_page(request, HTTPStatus.SERVICE_UNAVAILABLE, NOT_MIGRATED)
