"""Middleware that refuses requests for pages at a host that is not in ALLOWED_HOSTS. The API's views do the same."""

from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase

from payments.links import Links
from payments.service.error_pages import bad_request


class HostCheck:
    """Responds in development as in production, where Django would show its page for errors."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            Links.of(request)
        except DisallowedHost as error:
            return bad_request(request, error)
        return self.get_response(request)
