"""Django's request handler, with a short way to the API.

Around a page Django has sessions, forms, messages and frames to look after: eight layers, and signals before and after.
The API has none of these, and they would take longer than its answer. So below `/v2` a request goes from its address
to its view, and what Django's handler does for every answer is still done: errors are answered and logged,
connections that died are replaced.
"""

from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Any, cast

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler, get_script_name
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch, resolve, set_script_prefix
from django.utils.log import log_response


class ApiHandler(BaseHandler):
    """Answers requests below `/v2` without middleware, all others as Django does."""

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: FBT001, FBT002  Django's own signature
        super().load_middleware(is_async)
        self.api = cast("Callable[[HttpRequest], HttpResponse]", convert_exception_to_response(view_response))

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        if not is_api(request.path_info):
            return super().get_response(request)
        response = self.api(request)
        response.headers.setdefault("Content-Length", str(len(response.content)))
        response.headers["X-Content-Type-Options"] = "nosniff"
        if settings.SECURE_HSTS_SECONDS and request.is_secure():
            response.headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            log_response("%s: %s", response.reason_phrase, request.path, response=response, request=request)
        return response


def is_api(path: str) -> bool:
    return f"{path}/".startswith("/v2/")


def view_response(request: HttpRequest) -> HttpResponseBase:
    request.resolver_match = view = matched(request.path_info)
    return cast("HttpResponseBase", view.func(request, *view.args, **view.kwargs))


@lru_cache
def matched(path: str) -> ResolverMatch:
    return resolve(path)


class Handler(ApiHandler, WSGIHandler):
    """The same as a WSGI application."""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if not is_api(environ["PATH_INFO"]):
            return super().__call__(environ, start_response)
        set_script_prefix(get_script_name(environ))
        close_old_connections()
        response: Any = self.get_response(self.request_class(environ))
        start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
        return [response.content]  # as a list, which a server sends at once; whatever else it gets, it streams
