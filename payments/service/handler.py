"""Django's request handler, with a short way to the API, and with bounds to what a request may wait for.

Around a page Django has sessions, forms, messages and frames to look after: eight layers, and signals before and after.
The API has none of these, and they would take longer than its answer. So below `/v2` a request goes from its address
to its view, and what Django's handler does for every answer is still done: errors are answered and logged,
connections that died are replaced.
"""

import logging
import time
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache, partial
from http.client import BAD_REQUEST, NOT_MODIFIED, SERVICE_UNAVAILABLE
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

from payments.api.error_pages import is_api, unavailable
from payments.runtime import request_ids
from payments.runtime.deadlines import waits
from payments.runtime.servers import has_replica, replica
from payments.service.bodies import NotReceived, receive

PROBES = {"/healthz", "/readyz", *(["/metrics"] if settings.METRICS else [])}

# A request that waited so long for the database, and in vain, has had others wait behind it. They have waited enough,
# unless a replica has what they ask for.
LONG_SECONDS = 0.5
TOLD_AT_ONCE_SECONDS = 0.2

# Of the paths that hold no id. Those that do are many, and nobody shall learn from the time of an answer which of them
# somebody else has asked for.
PATH_KEPT_CHARACTERS_MAX = 16

# What else is done around each request: it is counted, or traced. Mostly nothing.
around: list[Callable[..., HttpResponseBase]] = []

access_logger = logging.getLogger("payments_site.access")


class ApiHandler(BaseHandler):
    """Answers requests below `/v2` without middleware, all others as Django does."""

    told_at_once_until = 0.0

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: FBT001, FBT002  Django's own signature
        super().load_middleware(is_async)
        self.view = cast("Callable[[HttpRequest], HttpResponse]", convert_exception_to_response(view_response))

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        return identified(request, by=self.short_way(request.path_info) or super().get_response)

    def short_way(self, path: str) -> Callable[[HttpRequest], HttpResponse] | None:
        """Return what answers requests of that path without middleware; None where Django does it all."""
        if is_api(path):
            return self.api_response
        return self.probe_response if path in PROBES else None

    def probe_response(self, request: HttpRequest) -> HttpResponse:
        return completed(request, self.view(request))

    def api_response(self, request: HttpRequest) -> HttpResponse:
        """Return the answer, which says at once that there is none where others have just waited for it in vain."""
        begun_at = time.monotonic()
        if begun_at < self.told_at_once_until:
            return completed(request, unavailable(request))
        response = completed(request, self.view(request))
        if getattr(response, "is_of_everybody", False) and (replica.is_away or not has_replica()):
            ended_at = time.monotonic()
            if ended_at - begun_at >= LONG_SECONDS:
                self.told_at_once_until = ended_at + TOLD_AT_ONCE_SECONDS
        return response


def identified(request: HttpRequest, *, by: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
    """Return the answer with its request's id, and log it where each request is to be."""
    begun_at = time.monotonic()
    request_id = request_ids.identify(request.META)
    for each in around:
        by = partial(each, by=by)
    response = by(request)
    response.headers[request_ids.HEADER] = request_id
    if settings.ACCESS_LOG:
        log_access(request, response, seconds=time.monotonic() - begun_at)
    return response


def completed(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Return an answer with what middleware adds to those of pages, as far as it means programs too."""
    if response.status_code != NOT_MODIFIED:  # its length would be that of the answer it stands for
        response.headers.setdefault("Content-Length", str(len(response.content)))
    response.headers["X-Content-Type-Options"] = "nosniff"
    if settings.SECURE_HSTS_SECONDS and request.is_secure():
        response.headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"
    if response.status_code >= BAD_REQUEST and response.status_code != SERVICE_UNAVAILABLE:
        log_response("%s: %s", response.reason_phrase, request.path, response=response, request=request)
    return response


def view_response(request: HttpRequest) -> HttpResponseBase:
    path = request.path_info
    request.resolver_match = view = matched(path) if len(path) <= PATH_KEPT_CHARACTERS_MAX else resolve(path)
    return cast("HttpResponseBase", view.func(request, *view.args, **view.kwargs))


@lru_cache
def matched(path: str) -> ResolverMatch:
    return resolve(path)


def log_access(request: HttpRequest, response: HttpResponseBase, *, seconds: float) -> None:
    access_logger.info("%s %.500s %s %.1f ms", request.method, request.path, response.status_code, seconds * 1000)


class Handler(ApiHandler, WSGIHandler):
    """The same as a WSGI application, whose answers are whole: a server would wait for who reads them slowly."""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if short_way := self.short_way(environ["PATH_INFO"]):
            with waits.database:
                set_script_prefix(get_script_name(environ))
                close_old_connections()
                return self.whole_answer(environ, start_response, by=short_way)
        try:
            receive(environ)
        except NotReceived as refusal:
            refused = refusal.response()
            return self.whole_answer(environ, start_response, by=lambda request: completed(request, refused))
        with waits.database, closing(super().__call__(environ, start_response)) as page:
            return [b"".join(page)]

    def whole_answer(
        self,
        environ: dict[str, Any],
        start_response: Callable[..., Any],
        *,
        by: Callable[[HttpRequest], HttpResponse],
    ) -> list[bytes]:
        """Answer in one piece: as a list, which a server sends at once; whatever else it gets, it streams."""
        environ.pop("CONTENT_TYPE", None)  # of a body that nobody reads: Django fails on some, and is slow on others
        response: Any = identified(self.request_class(environ), by=by)
        start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
        return [response.content]
