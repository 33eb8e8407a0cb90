"""The resources of the API: the list of payments, the change feed, and one payment."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_304_NOT_MODIFIED
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from payments.access.authentication import BearerAuthentication
from payments.access.clients import client_of
from payments.access.keys import AuthenticatedKey, no_queries
from payments.access.throttling import KeyThrottle
from payments.api.changes_pagination import ChangesPagination
from payments.api.etags import Content, can_skip_content, conditional_response, parse_known
from payments.api.negotiation import HALNegotiation
from payments.api.pagination import KeysetPagination
from payments.api.parameters import parse_query
from payments.api.reading import ContentReads, RequestReads
from payments.api.renderers import HALRenderer
from payments.api.responses import set_fields
from payments.api.serializers import PaymentSerializer, serialize_page
from payments.database.round_trips import Query
from payments.filters import EVERYTHING, Selection
from payments.links import Links
from payments.listing import Listing
from payments.models import PAYMENT_ID, Access
from payments.routing import find_payment, payment_query

READING = ("GET", "HEAD")
ALLOW = "GET, HEAD, OPTIONS"


class Document(NamedTuple):
    """The document of a response, and the revision of the payments in the same snapshot. None: unknown revision."""

    value: Any
    revision: int | None


class PaymentView(APIView):
    """The common part of all resources. Subclasses define `get`. Compiled statements read the payments."""

    http_method_names = ["get", "head", "options"]
    content_negotiation_class = HALNegotiation
    serializer_class = PaymentSerializer

    format_kwarg = None  # the API has no format suffixes

    links: Links
    known: Sequence[str]  # the ETags that the client knows
    reads: RequestReads
    throttles: Sequence[BaseThrottle] = ()

    @property
    def default_response_headers(self) -> dict[str, str]:
        """Return no fields: `finalize_response` adds them."""
        return {}

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Return the request without parsers and their context, because the API reads no bodies.

        The context refers to the request and the view. That reference cycle would keep both in memory until the
        garbage collector runs.
        """
        self.known = parse_known(request.META.get("HTTP_IF_NONE_MATCH"))
        self.reads = RequestReads(self.get_content_reads(), can_skip_content=can_skip_content(self.known))
        authenticators, negotiator = self.get_authenticators(), self.get_content_negotiator()
        drf_request = Request(request, authenticators=authenticators, negotiator=negotiator)
        drf_request.parser_context.clear()
        # These are read often. DRF would look them up in the other request, after a search that fails.
        drf_request.META, drf_request.method = request.META, request.method
        return drf_request

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Return the authenticators. They run the queries of the view in the same round trip as their own."""
        queries_for = self.reads.queries_for if self.request.method in READING else no_queries
        classes: Sequence[type[BearerAuthentication]] = self.authentication_classes  # type: ignore[assignment]
        return [authentication_class(queries_for) for authentication_class in classes]

    def get_content_reads(self) -> ContentReads:
        """Return what the content needs. It must not refer to the view (reference cycle)."""
        raise NotImplementedError

    def head(self, request: Request, **kwargs: str) -> HttpResponseBase:
        """Respond as to GET. Without this method Django sets `self.head = self.get`, which is a reference cycle."""
        return self.get(request, **kwargs)

    def get(self, request: Request, **kwargs: str) -> HttpResponseBase:
        raise NotImplementedError

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the request in DRF's order. The API has no versions and no format suffixes."""
        self.links = Links.of(request._request)  # noqa: SLF001  first: it refuses a host that is not allowed
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        self.perform_authentication(request)
        self.check_permissions(request)
        self.check_throttles(request)

    def perform_authentication(self, request: Request) -> None:
        """Authenticate the request. `request.user`, which DRF reads, first searches the other request in vain."""
        request._authenticate()  # type: ignore[attr-defined]  # noqa: SLF001  missing in the stubs

    def get_throttles(self) -> list[BaseThrottle]:
        """Return the throttles; none without RATE_LIMIT. Keep them: `finalize_response` adds their headers."""
        throttles = super().get_throttles() if settings.RATE_LIMIT else []
        self.throttles = throttles
        return throttles

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        super().finalize_response(request, response, *args, **kwargs)
        if response.status_code != HTTP_304_NOT_MODIFIED:
            set_fields(response, {"Allow": ALLOW})
        for throttle in self.throttles:
            if isinstance(throttle, KeyThrottle):
                set_fields(response, throttle.headers)
        return response

    def listing(self) -> Listing:
        """Return the list of all payments that the key gives access to."""
        key: AuthenticatedKey = self.request.auth  # type: ignore[assignment]  # HasKey requires it
        return self.reads.listing(key, client=client_of(self.request))

    def respond(
        self, read: Callable[[], Document], *, listing: Listing, parameters: tuple[Any, ...]
    ) -> HttpResponseBase:
        """Return the document that `read` returns, or 304 if the client knows it. `parameters` are the request's.

        A page of the browsable API also depends on templates, so it has no ETag.
        """
        renderer = self.request.accepted_renderer
        if not isinstance(renderer, HALRenderer):
            return Response(read().value)

        def content() -> Content:
            value, revision = read()
            return Content(renderer.render(value), revision)

        request = (self.links.parts, listing.access, parameters)
        return conditional_response(content, request=request, revision=listing.revision, known=self.known)


class PageView(PaymentView):
    """Payments, page by page. Subclasses define `pagination_class`."""

    pagination_class: type[KeysetPagination | ChangesPagination]
    has_filters = False  # whether the browsable API shows a form for filters

    def get_content_reads(self) -> ContentReads:
        self.paginator = self.pagination_class(self.request.META["QUERY_STRING"])
        return self.paginator

    def get(self, request: Request, **kwargs: str) -> HttpResponseBase:
        self.paginator.validate(self.listing)
        listing = self.listing()
        return self.respond(partial(self.read, listing), listing=listing, parameters=self.paginator.identity)

    def read(self, listing: Listing) -> Document:
        page: Any = self.paginator.paginate(listing)
        records = serialize_page(page.rows, links=self.links)
        return Document(self.paginator.envelope(page, records, links=self.links), page.revision)


class PaymentList(PageView):
    """Payments, newest first."""

    name = "Payments"
    has_filters = True
    pagination_class = KeysetPagination


class PaymentChanges(PageView):
    """Payments in the order in which they were last created or changed."""

    name = "Payment changes"
    pagination_class = ChangesPagination


class PaymentDetail(PaymentView):
    """One payment."""

    name = "Payment"

    def get_content_reads(self) -> "PaymentReads":
        return PaymentReads(self.request.META["QUERY_STRING"], self.kwargs["payment_id"])

    def get(self, request: Request, **kwargs: str) -> HttpResponseBase:
        parse_query(request.META["QUERY_STRING"])  # refuses all parameters
        payment_id = kwargs["payment_id"]
        if not re.fullmatch(PAYMENT_ID, payment_id):
            raise NotFound
        listing = self.listing()
        return self.respond(partial(self.read, listing, payment_id), listing=listing, parameters=(payment_id,))

    def read(self, listing: Listing, payment_id: str) -> Document:
        found = find_payment(listing, payment_id)
        if not found.rows:
            raise NotFound
        [row] = found.rows
        return Document(self.serializer_class(row, links=self.links).data, found.revision)


class PaymentReads(NamedTuple):
    """What the response with one payment needs."""

    query_string: str
    payment_id: str
    selection: Selection = EVERYTHING

    @property
    def is_valid(self) -> bool:
        return not self.query_string and bool(re.fullmatch(PAYMENT_ID, self.payment_id))

    def queries_for(self, access: Access) -> list[Query]:
        return [payment_query(access, self.payment_id)]
