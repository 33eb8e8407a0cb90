"""Middleware that lets pages hash passwords in turn, and responds with 429 to a request that gets no turn."""

from collections.abc import Callable
from http import HTTPStatus

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from payments.access.clients import client_address
from payments.runtime.password_queue import TooManyPasswordChecks
from payments.runtime.process import process

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
    context = {**admin.site.each_context(request), "title": "Too many password checks"}
    response = render(request, "admin/too_many_password_checks.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    response.headers["Cache-Control"] = "no-store"
    return response
