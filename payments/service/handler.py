"""The WSGI request handler: it skips middleware for the API and enforces the deadline of each request.

Pages use sessions, forms, messages and frames, each with a layer of middleware. The API uses none of them, and
they would take longer than the response itself. So a request below `/v2` goes directly from its URL to its view. The
handler still does what Django does for every response: it handles and logs errors, and replaces broken connections.

It uses private APIs of Django: `BaseHandler.load_middleware`, `convert_exception_to_response` and `log_response`,
because Django has no public way to serve some paths without middleware; and the attributes of a `WSGIRequest`.
"""

import io
import logging
import time
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache, partial
from http.client import BAD_REQUEST, NOT_MODIFIED, SERVICE_UNAVAILABLE
from typing import Any, TypeAlias, cast

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest, get_path_info
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.urls import ResolverMatch, resolve, set_script_prefix
from django.utils.log import log_response

from payments.api import request_ids
from payments.api.error_pages import is_api
from payments.api.responses import list_fields, set_fields
from payments.conf import conf
from payments.runtime.process import process
from payments.runtime.shares import NoPlace
from payments.service.bodies import InvalidBody, read_body
from payments.service.error_pages import error_page, too_many_pages

PROBES = {"/healthz", "/readyz", *(["/metrics"] if conf.METRICS else [])}

# Read once: later, the setting begins with the path that the site is mounted at, which the path of a request lacks.
STATIC_PATH = settings.STATIC_URL

# Only the URL matches of paths without an ID are cached. IDs are too many, and a response time must not reveal which
# IDs other clients have requested.
CACHED_PATH_CHARACTERS_MAX = 16

Responder: TypeAlias = Callable[[HttpRequest], HttpResponse]

access_logger = logging.getLogger("payments_site.access")


class ApiHandler(BaseHandler):
    """Responds to the API and to probes without middleware, and to all other requests as Django does."""

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: FBT001, FBT002  Django's own signature
        super().load_middleware(is_async)
        self.view_responder = cast("Responder", convert_exception_to_response(call_view))
        # Read once: each look-up of a setting calls a function of Django.
        self.has_access_log = conf.ACCESS_LOG
        self.hsts_seconds = settings.SECURE_HSTS_SECONDS

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        return self.respond_with_id(request, self.direct_responder(request.path_info) or super().get_response)

    def direct_responder(self, path: str) -> Responder | None:
        """Return the method that responds to a path without middleware; None if the path needs middleware."""
        if is_api(path):
            return self.respond_to_api
        return self.respond_to_probe if path in PROBES else None

    def respond_to_probe(self, request: HttpRequest) -> HttpResponse:
        return self.finish(request, self.view_responder(request))

    def respond_to_api(self, request: HttpRequest) -> HttpResponse:
        return self.finish(request, self.view_responder(request))

    def respond_with_id(
        self, request: HttpRequest, respond: Callable[[HttpRequest], HttpResponseBase]
    ) -> HttpResponseBase:
        """Return the response with the request's ID, and write the access log if it is enabled."""
        started_at = time.monotonic()
        request_id = request_ids.assign(request.META)
        response = process.hooks.respond(request, respond) if process.hooks.registered else respond(request)
        set_fields(response, {request_ids.HEADER: request_id})
        if self.has_access_log:
            log_access(request, response, seconds=time.monotonic() - started_at)
        return response

    def finish(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Add the headers and log the errors. For pages, Django's middleware does this."""
        fields = {}
        if response.status_code != NOT_MODIFIED:  # its length would be the length of the full response
            fields["Content-Length"] = str(len(response.content))
        fields["X-Content-Type-Options"] = "nosniff"
        set_fields(response, fields)
        if self.hsts_seconds and request.is_secure():
            set_fields(response, {"Strict-Transport-Security": f"max-age={self.hsts_seconds}"})
        if response.status_code >= BAD_REQUEST and response.status_code != SERVICE_UNAVAILABLE:
            log_response("%s: %s", response.reason_phrase, request.path, response=response, request=request)
        return response


def call_view(request: HttpRequest) -> HttpResponseBase:
    path = request.path_info
    match = cached_resolve(path) if len(path) <= CACHED_PATH_CHARACTERS_MAX else resolve(path)
    request.resolver_match = match
    response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
    if isinstance(response, SimpleTemplateResponse):  # OPTIONS, and the browsable API
        set_script_prefix(request.META["SCRIPT_NAME"])  # for the URLs in templates
        response.render()
    return response


@lru_cache
def cached_resolve(path: str) -> ResolverMatch:
    return resolve(path)


def log_access(request: HttpRequest, response: HttpResponseBase, *, seconds: float) -> None:
    access_logger.info("%s %.500s %s %.1f ms", request.method, request.path, response.status_code, seconds * 1000)


class BodilessRequest(WSGIRequest):
    """A request whose body nothing reads. Django's initialization takes longer, and fails on some types of bodies."""

    encoding = "utf-8"

    def __init__(self, environ: dict[str, Any]) -> None:
        self.environ = self.META = environ
        self.method = environ["REQUEST_METHOD"].upper()
        path: str = environ["PATH_INFO"]
        environ["PATH_INFO"] = self.path_info = path if path.isascii() else get_path_info(environ)
        environ["SCRIPT_NAME"] = script_name = environ.get("SCRIPT_NAME", "").encode("latin-1").decode()
        self.path = f"{script_name}{self.path_info}"
        self.content_type, self.content_params = "", {}
        self.resolver_match = None
        self._stream = io.BytesIO()  # the body
        self._read_started = False


class Handler(ApiHandler, WSGIHandler):
    """The WSGI application. It sends whole responses: a thread would have to wait for a slow reader of a stream.

    Pages take longer than the API, and read request bodies. So they use only their share of the worker's threads.
    Static files are exempt: a page needs several of them at once, and they are read fast.
    """

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        path = environ["PATH_INFO"]
        if respond := self.direct_responder(path):
            return self.respond_directly(environ, start_response, respond)
        if path.startswith(STATIC_PATH):
            return self.respond_to_page({**environ, "CONTENT_LENGTH": "0"}, start_response)  # without a slow body
        try:
            with process.shares.pages():
                return self.respond_to_page(environ, start_response)
        except NoPlace:
            return self.send(environ, start_response, partial(self.refuse, respond=too_many_pages))

    def respond_to_page(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        try:
            read_body(environ)
        except InvalidBody as error:
            respond = partial(error_page, status=error.status, text=str(error))
            return self.send(environ, start_response, partial(self.refuse, respond=respond))
        with process.deadline, closing(super().__call__(environ, start_response)) as parts:
            return [b"".join(parts)]

    def refuse(self, request: HttpRequest, *, respond: Responder) -> HttpResponse:
        """Return an error page for a request that no middleware has seen."""
        set_script_prefix(request.META["SCRIPT_NAME"])  # for the URLs in the page
        return self.finish(request, respond(request))

    def respond_directly(
        self, environ: dict[str, Any], start_response: Callable[..., Any], respond: Responder
    ) -> list[bytes]:
        with process.deadline:
            for connection in connections.all(initialized_only=True):  # for pages, Django's handler does this
                connection.close_if_unusable_or_obsolete()
            return self.send(environ, start_response, respond)

    def send(self, environ: dict[str, Any], start_response: Callable[..., Any], respond: Responder) -> list[bytes]:
        """Return the response's body as a list, which Granian sends at once. It streams any other iterable."""
        response: Any = self.respond_with_id(BodilessRequest(environ), respond)
        start_response(f"{response.status_code} {response.reason_phrase}", list_fields(response))
        return [response.content]
