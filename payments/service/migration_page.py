"""Middleware for development: a page that says which command to run if the database lacks migrations."""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from payments.database.migration_state import NOT_MIGRATED, is_unmigrated
from payments.service.error_pages import error_page


class MigrationPage:
    """Replaces Django's page about a missing table. The API has its own response."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_unmigrated(exception):
            return None
        return error_page(request, HTTPStatus.SERVICE_UNAVAILABLE, NOT_MIGRATED)
