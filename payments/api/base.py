"""The base classes of this API's views: DRF's view without what the API does not need.

Some methods replace DRF's to save processor time. Their comments have the microseconds that each saves, of 165 that a
page of 20 payments takes in Python.
"""

from collections.abc import Sequence
from typing import Any

from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException, MethodNotAllowed
from rest_framework.generics import GenericAPIView
from rest_framework.metadata import SimpleMetadata
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.status import HTTP_304_NOT_MODIFIED
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView, get_view_description

from payments.access.authentication import BearerAuthentication, HasKey, InsufficientScope
from payments.access.keys import AuthenticatedKey
from payments.access.throttling import KeyThrottle
from payments.api import request_ids
from payments.api.browsable import BrowserAuthentication, PageRenderer
from payments.api.errors import InvalidParameter, problem_response
from payments.api.etags import ANY, parse_known
from payments.api.links import Links
from payments.api.parameters import invalid_from
from payments.api.reader import Reader
from payments.api.renderers import HALNegotiation, HALRenderer
from payments.conf import conf
from payments.listing.content import Query
from payments.listing.query import payment_query
from payments.models import KeyScope, Payment

READING = ("GET", "HEAD")


class PaymentsView(APIView):
    """A view of payments: the checks of a request, in their order, and the headers of a response."""

    # A view of DRF takes what it does not name itself from the project's REST_FRAMEWORK.
    authentication_classes = [BearerAuthentication]
    permission_classes = [HasKey]
    renderer_classes = [HALRenderer]
    content_negotiation_class = HALNegotiation
    parser_classes = []
    versioning_class = None
    metadata_class: Any = SimpleMetadata
    schema = None
    format_kwarg = None  # the API has no format suffixes
    default_response_headers: dict[str, str] = {}  # 6 µs: `finalize_response` adds the fields

    name: str  # in the response to OPTIONS, and in the browsable API
    key_scope: KeyScope
    links: Links
    request_id: str
    throttles: Sequence[KeyThrottle] = ()

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        """Return the view, without a transaction around it if ATOMIC_REQUESTS is set."""
        return non_atomic_requests(super().as_view(**initkwargs))

    def get_exception_handler(self) -> Any:
        return problem_response

    def get_view_name(self) -> str:
        return self.name

    def get_view_description(self, html: bool = False) -> str:  # noqa: FBT001, FBT002  DRF's signature
        return get_view_description(self, html)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the request in DRF's order. 3 µs: the API has no versions and no suffixes."""
        self.links = Links.of(request)  # refuses a host that is not allowed
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        self.perform_authentication(request)
        self.check_permissions(request)
        self.check_throttles(request)
        self.check_scope(request)

    def check_scope(self, request: Request) -> None:
        """Refuse a key of another scope. DRF's checks are over; it refuses another method later."""
        key = request.auth
        if isinstance(key, AuthenticatedKey) and key.scope != self.key_scope:
            method = str(request.method).lower()
            if method != "options" and method in self.http_method_names:
                raise InsufficientScope(self.key_scope)

    def http_method_not_allowed(self, request: HttpRequest | Request, *args: Any, **kwargs: Any) -> Any:
        *names, last = map(str.upper, self.http_method_names)
        raise MethodNotAllowed(str(request.method), f"Only {', '.join(names)} and {last} are allowed.")

    def get_throttles(self) -> list[BaseThrottle]:
        """Return the throttle with a RATE_LIMIT, and keep it: `finalize_response` adds its headers."""
        self.throttles = [KeyThrottle()] if conf.RATE_LIMIT else []
        return list(self.throttles)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        super().finalize_response(request, response, *args, **kwargs)
        response.headers[request_ids.HEADER] = self.request_id
        if response.status_code != HTTP_304_NOT_MODIFIED:
            response.headers["Allow"] = ", ".join(self.http_method_names).upper()
        for throttle in self.throttles:
            for name, value in throttle.headers.items():
                response.headers[name] = value
        return response


class ReadView(PaymentsView, GenericAPIView[Payment]):
    """A view that reads payments by one statement. Subclasses define `get_query` and `get`.

    The parameters are parsed before the key is checked, because one statement reads the key and the content. Errors of
    the parameters are reported after the checks.
    """

    http_method_names = ["get", "head", "options"]
    key_scope = KeyScope.READ
    filter_backends = []
    pagination_class: Any = None

    known: Sequence[str]  # the ETags that the client knows
    reader: Reader

    def get_renderers(self) -> list[BaseRenderer]:
        renderers = super().get_renderers()
        return [*renderers, PageRenderer()] if conf.BROWSABLE_API else renderers

    def get_query(self, request: HttpRequest) -> Query:
        """Return the query for the content of the response.

        :raises APIException: the request is invalid
        """
        raise NotImplementedError

    def find_state(self, _request: Request) -> tuple[Any, ...]:
        """Return what the response depends on, besides the request and the payments."""
        return ()

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Return the request, and prepare the reader. A view that reads needs no parsers."""
        self.request_id = request_ids.assign(request.META)
        self.errors: list[APIException] = []  # at most one
        query = self.prepare_query(request) if request.method in READING else None
        self.known = parse_known(request.META.get("HTTP_IF_NONE_MATCH"))
        self.reader = Reader(query, is_conditional=bool(self.known) and ANY not in self.known)
        authenticators, negotiator = self.get_authenticators(), self.get_content_negotiator()
        drf_request = Request(request, authenticators=authenticators, negotiator=negotiator)
        # 9 µs: the context refers to the request, so both would wait for the garbage collector.
        drf_request.parser_context.clear()
        # 6 µs: DRF would look them up in the other request, after a search that fails.
        drf_request.META, drf_request.method, drf_request.path = request.META, request.method, request.path
        return drf_request

    def prepare_query(self, request: HttpRequest) -> Query | None:
        """Return the query for the content; None for an invalid request.

        If `from` must be looked up to find the first error, return the query for that payment.
        """
        try:
            return self.get_query(request)
        except APIException as error:
            self.errors.append(error.with_traceback(None))  # the traceback refers to this view
            start = error.start if isinstance(error, InvalidParameter) else None
            return None if start is None else payment_query(start)

    def refuse_invalid(self) -> None:
        """Raise the first error of the parameters, in the order that docs/api/reference.md describes.

        :raises APIException: there is an error
        """
        if self.errors:
            if self.reader.query is not None and not self.reader.content.rows:
                raise invalid_from()
            raise self.errors.pop()  # an exception that is raised refers to this view, which must not refer to it

    def get_authenticators(self) -> list[BaseAuthentication]:
        authentication_class = BrowserAuthentication if conf.BROWSABLE_API else BearerAuthentication
        return [authentication_class(self.reader.find_key)]

    def head(self, request: Request, **kwargs: str) -> HttpResponseBase:
        """Respond as to GET. 12 µs: Django would set `self.head = self.get`, which is a reference cycle."""
        return self.get(request, **kwargs)

    def get(self, request: Request, **kwargs: str) -> HttpResponseBase:
        raise NotImplementedError

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.refuse_invalid()
