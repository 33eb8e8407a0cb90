"""The WSGI application: it skips middleware for the API, and limits the time and the threads of a request.

Pages use sessions, forms, messages and frames, each with a layer of middleware. The API uses none of them, and they
would take longer than the response itself. So a request below `/v2`, or for a probe, goes directly from its URL to its
view. All other requests go to Django's own application.
"""

import logging
import re
import time
from collections.abc import Callable
from contextlib import closing
from functools import cache, lru_cache, partial
from http.client import BAD_REQUEST, INTERNAL_SERVER_ERROR, NOT_MODIFIED
from pathlib import Path
from typing import Any, TypeAlias

from django.apps import apps
from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.core.signals import got_request_exception
from django.db import Error, close_old_connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.urls import ResolverMatch, resolve, reverse, set_script_prefix
from django.utils.module_loading import import_string

from payments.access.clients import ENVIRON_KEY, Client, ClientKind, client_at_address, client_of, find_user
from payments.api import request_ids
from payments.conf import conf
from payments.runtime.process import process
from payments.runtime.shares import NoPlace
from payments.service.bodies import InvalidBody, is_media_type, read_body
from payments.service.error_pages import error_page, server_error, too_many_pages, unavailable

NEEDS_NO_MIDDLEWARE = re.compile("/v2(?:/.*)?|/healthz|/readyz" + ("|/metrics" if conf.METRICS else ""), re.DOTALL)

IMPORTS = "/v2/payments/imports"  # the only path of the API with a body

# Read once: later, the setting begins with the path that the site is mounted at, which the path of a request lacks.
STATIC_PATH = settings.STATIC_URL

# Only the URL matches of paths without an ID are cached. IDs are too many, and a response time must not reveal which
# IDs other clients have requested.
CACHED_PATH_CHARACTERS_MAX = 16

Responder: TypeAlias = Callable[[HttpRequest], HttpResponseBase]

logger = logging.getLogger("django.request")
access_logger = logging.getLogger("payments_site.access")


class Handler:
    """The WSGI application. It sends whole responses: a thread would have to wait for a slow reader of a stream.

    Pages take longer than the API, and read request bodies. So they use only a share of the worker's threads. Users and
    strangers have different shares. Static files are exempt: a page needs several at once, and they are read fast. A
    missing one is a page: it takes as long as others.
    """

    def __init__(self, django: Callable[..., Any]) -> None:
        self.django = django  # the project's application: `get_wsgi_application()`
        self.staff_path = reverse("admin:index") if apps.is_installed("django.contrib.admin") else None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        body = self.respond(environ, start_response)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else body

    def respond(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        path = environ["PATH_INFO"]
        if NEEDS_NO_MIDDLEWARE.fullmatch(path):
            with process.deadline:
                close_old_connections()
                return self.send(environ, start_response, respond_directly)
        if path.startswith(STATIC_PATH) and is_static_file(path):
            return self.respond_to_page({**environ, "CONTENT_LENGTH": "0"}, start_response)  # without a slow body
        try:
            client = environ[ENVIRON_KEY] = self.client_of_page(environ)
        except Error as error:
            logger.error("The database failed: %s", error)  # noqa: TRY400  an outage needs no traceback
            return self.send(environ, start_response, partial(refuse, respond=unavailable))
        share = process.shares.staff_pages if client.kind == ClientKind.USER else process.shares.public_pages
        try:
            with share(client):
                return self.respond_to_page(environ, start_response)
        except NoPlace:
            return self.send(environ, start_response, partial(refuse, respond=too_many_pages))

    def client_of_page(self, environ: dict[str, Any]) -> Client:
        """Return the client that asks for a page: a user with a session, or an address.

        Pages outside of the admin are the same for all clients, so all clients are strangers there.

        :raises Error: the database is unavailable
        """
        is_for_staff = self.staff_path and environ["PATH_INFO"].startswith(self.staff_path)
        user_id = find_user(environ) if is_for_staff else None
        return Client(ClientKind.USER, user_id) if user_id else client_at_address(environ)

    def respond_to_page(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        try:
            read_body(environ)
        except InvalidBody as error:
            respond = partial(error_page, status=error.status, text=str(error))
            return self.send(environ, start_response, partial(refuse, respond=respond))
        with process.deadline, closing(self.django(environ, start_response)) as parts:
            return [b"".join(parts)]

    def send(self, environ: dict[str, Any], start_response: Callable[..., Any], respond: Responder) -> list[bytes]:
        """Return the response's body as a list, which Granian sends at once. It streams any other iterable."""
        if environ["PATH_INFO"] != IMPORTS or not is_media_type(environ.get("CONTENT_TYPE", "")):
            # Nothing reads a body. Django would fail on some media types.
            environ["CONTENT_TYPE"], environ["CONTENT_LENGTH"] = "", "0"
        request = WSGIRequest(environ)
        response: Any = respond(request)
        start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
        return [response.content]


def is_static_file(path: str) -> bool:
    """Return whether `collectstatic` has stored a file for this path. Without STATIC_ROOT, each path may have one."""
    root: Any = settings.STATIC_ROOT
    return not root or path.removeprefix(STATIC_PATH) in stored_files(root)


@lru_cache
def stored_files(root: Path | str) -> frozenset[str]:
    """Return the names below a directory. A client that asks for other files must not learn whether they exist."""
    files = (path for path in Path(root).rglob("*") if path.suffix not in {".gz", ".br"} and path.is_file())
    return frozenset(path.relative_to(root).as_posix() for path in files)


def respond_directly(request: HttpRequest) -> HttpResponseBase:
    return observe(request, partial(finish, respond=respond_by_view))


def refuse(request: HttpRequest, *, respond: Responder) -> HttpResponseBase:
    """Return an error page for a request that no middleware has seen."""
    set_script_prefix(request.META["SCRIPT_NAME"])  # for the URLs in the page
    return observe(request, partial(finish, respond=respond))


def observe(request: HttpRequest, respond: Responder) -> HttpResponseBase:
    """Return the response with the request's ID, call the hooks, and write the access log if it is enabled."""
    started_at = time.monotonic()
    request_id = request_ids.assign(request.META)
    response = process.hooks.respond(request, respond)
    response.headers.setdefault(request_ids.HEADER, request_id)
    if response.status_code >= BAD_REQUEST:  # clients may otherwise keep some errors, such as 404
        response.headers.setdefault("Cache-Control", "no-store")
    if conf.ACCESS_LOG:
        milliseconds = (time.monotonic() - started_at) * 1000
        arguments = (request.method, request.path, response.status_code, milliseconds, client_of(request.META))
        access_logger.info("%.20s %.500s %s %.1f ms %s", *arguments)
    return response


# Middleware that adds the same headers to every page.
HEADER_MIDDLEWARE = (
    "SecurityMiddleware",
    "CSPMiddleware",
    "ContentSecurityPolicyMiddleware",
    "XFrameOptionsMiddleware",
)


@cache
def page_headers() -> dict[str, str]:
    """Return the headers that the project's middleware adds to every page."""
    response = HttpResponse()
    del response.headers["Content-Type"]
    for name in settings.MIDDLEWARE:
        if name.endswith(HEADER_MIDDLEWARE):
            import_string(name)(lambda _request: response).process_response(HttpRequest(), response)
    return dict(response.items())


def finish(request: HttpRequest, *, respond: Responder) -> HttpResponseBase:
    """Return a response with the headers that Django's middleware adds for pages, and log an error."""
    response: Any = respond(request)
    headers = response.headers
    if headers.get("Content-Type", "").startswith("text/"):
        for name, value in page_headers().items():
            headers.setdefault(name, value)
    if response.status_code != NOT_MODIFIED:  # its length would be the length of the full response
        headers["Content-Length"] = str(len(response.content))
    headers["X-Content-Type-Options"] = "nosniff"
    if settings.SECURE_HSTS_SECONDS and request.is_secure():
        headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"
    if BAD_REQUEST <= response.status_code < INTERNAL_SERVER_ERROR:
        extra = {"status_code": response.status_code, "request": request}
        logger.warning("%s: %s", response.reason_phrase, request.path, extra=extra)
    return response  # type: ignore[no-any-return]


def respond_by_view(request: HttpRequest) -> HttpResponseBase:
    path = request.path_info
    match = cached_resolve(path) if len(path) <= CACHED_PATH_CHARACTERS_MAX else resolve(path)
    request.resolver_match = match
    try:
        response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
        if isinstance(response, SimpleTemplateResponse):  # OPTIONS, and the browsable API
            set_script_prefix(request.META["SCRIPT_NAME"])  # for the URLs in templates
            response.render()
    except Exception:
        got_request_exception.send(sender=None, request=request)
        extra = {"status_code": 500, "request": request}
        logger.exception("Internal Server Error: %s", request.path, extra=extra)
        return server_error(request)
    return response


@lru_cache
def cached_resolve(path: str) -> ResolverMatch:
    return resolve(path)
