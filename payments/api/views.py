"""The two resources of the API: the list of payments and one payment."""

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.status import HTTP_304_NOT_MODIFIED
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from payments.access.keys import AuthenticatedKey
from payments.access.throttling import KeyThrottle
from payments.api.etags import conditional_response
from payments.api.negotiation import HALNegotiation
from payments.api.pagination import KeysetPagination
from payments.api.parameters import parse_query
from payments.api.renderers import build_response
from payments.api.serializers import PaymentSerializer, serialize_page
from payments.hal import HAL
from payments.links import Links
from payments.listing import Listing
from payments.models import PAYMENT_ID
from payments.routing import find_payment, server_for_lists
from payments.rows import Row


class PaymentView(APIView):
    """The common part of both resources. Subclasses define `get`. Compiled statements read the payments."""

    http_method_names = ["get", "head", "options"]
    content_negotiation_class = HALNegotiation
    serializer_class = PaymentSerializer

    links: Links
    throttles: Sequence[BaseThrottle] = ()

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {"Allow": "GET, HEAD, OPTIONS"}

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Return the request without a parser context, because the API reads no bodies.

        The context refers to the request and the view. That reference cycle would keep both in memory until the
        garbage collector runs.
        """
        drf_request = super().initialize_request(request, *args, **kwargs)
        drf_request.parser_context.clear()
        return drf_request

    def head(self, request: Request, **kwargs: str) -> HttpResponseBase:
        """Respond as to GET. Without this method Django sets `self.head = self.get`, which is a reference cycle."""
        return self.get(request, **kwargs)

    def get(self, request: Request, **kwargs: str) -> HttpResponseBase:
        raise NotImplementedError

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.links = Links.of(request)  # first: it refuses a host that is not allowed
        super().initial(request, *args, **kwargs)

    def get_throttles(self) -> list[BaseThrottle]:
        """Return the throttles; none without RATE_LIMIT. Keep them: `finalize_response` adds their headers."""
        throttles = super().get_throttles() if settings.RATE_LIMIT else []
        self.throttles = throttles
        return throttles

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        super().finalize_response(request, response, *args, **kwargs)
        for throttle in self.throttles:
            if isinstance(throttle, KeyThrottle):
                for name, value in throttle.headers.items():
                    response.headers[name] = value
        if response.status_code == HTTP_304_NOT_MODIFIED:
            del response.headers["Allow"]
        return response

    def key_listing(self) -> Listing:
        """Return the list of all payments that the key gives access to, and choose the server that it is read from."""
        key = cast("AuthenticatedKey", self.request.auth)
        return Listing(key.access, using=server_for_lists(), revision=key.revision)

    def respond(self, build_document: Callable[[], Any], *, version: tuple[Any, ...]) -> HttpResponseBase:
        """Return the document, or 304 if the client has this version of it.

        A page of the browsable API also depends on templates, so it has no ETag.
        """
        request = self.request
        if request.accepted_renderer.media_type != HAL:
            return build_response(request, build_document())
        return conditional_response(
            lambda: build_response(request, build_document()),
            version=(self.links.parts, version),
            if_none_match=request.META.get("HTTP_IF_NONE_MATCH"),
        )


class PaymentList(PaymentView):
    """Payments, newest first, page by page."""

    name = "Payments"
    pagination_class = KeysetPagination

    def get(self, request: Request, **kwargs: str) -> HttpResponseBase:
        paginator = self.pagination_class()
        listed = paginator.paginate(self.key_listing(), request.META["QUERY_STRING"])

        def document() -> dict[str, Any]:
            records = serialize_page(listed.page.rows, links=self.links)
            return paginator.envelope(listed, records, links=self.links)

        return self.respond(document, version=listed.version)


class PaymentDetail(PaymentView):
    """One payment."""

    name = "Payment"

    def get(self, request: Request, **kwargs: str) -> HttpResponseBase:
        parse_query(request.META["QUERY_STRING"])  # refuses all parameters
        row = self.find(kwargs["payment_id"])
        return self.respond(lambda: self.serializer_class(row, links=self.links).data, version=(row,))

    def find(self, payment_id: str) -> Row:
        row = find_payment(self.key_listing(), payment_id) if re.fullmatch(PAYMENT_ID, payment_id) else None
        if row is None:
            raise NotFound
        return row
