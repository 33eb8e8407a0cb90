"""Middleware that lets pages hash passwords in turn, and responds with 429 to a request that gets no turn."""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from payments.access.clients import client_address
from payments.runtime.password_queue import TooManyPasswordChecks
from payments.runtime.process import process
from payments.service.error_pages import error_page

RETRY_SECONDS = 3


class PasswordTurns:
    """Gives each request a place in the password queue. The API needs none: it hashes no passwords."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with process.password_queue.request(client_address(request.META)):
            return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return too_many_password_checks(request) if isinstance(exception, TooManyPasswordChecks) else None


def too_many_password_checks(request: HttpRequest) -> HttpResponse:
    headers = {"Retry-After": str(RETRY_SECONDS), "Cache-Control": "no-store"}
    text = (
        "The service checks one password at a time, and other checks are under way. "
        "Go back, wait a few seconds, and send the form again."
    )
    return error_page(request, HTTPStatus.TOO_MANY_REQUESTS, text, headers=headers)
