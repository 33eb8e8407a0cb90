"""Payments in the admin: a list that is paged as the API's is, a page for each, and what was found as a file."""

import re
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from msgspec.json import format as formatted

from payments.admin.base import ReadOnlyAdmin
from payments.admin.display import ShownPayment, change_href
from payments.admin.downloads import FORMATS, Format, export_part
from payments.admin.search import TOO_WIDE, SearchForm
from payments.api.errors import RETRY_SECONDS
from payments.api.pagination import Page, UnknownStart, fetch_page
from payments.api.parameters import FILTERS
from payments.api.serializers import record, writer
from payments.filters import GivenFilter, Selection
from payments.links import Addresses
from payments.listing import Listing
from payments.models import PAYMENT_ID, Access, Organization, Payment, PaymentQuerySet
from payments.record import encode
from payments.runtime.database_errors import is_timeout

PAGE_ROWS = 50
OTHERS_MAX = 5

EMPTY = Page([], None, None)


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    """Payments come in by import alone."""

    def get_urls(self) -> list[Any]:
        name = "payments_payment_export"
        return [
            path("export.<str:suffix>", self.admin_site.admin_view(self.export_view), name=name),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """List what is searched for, from the payment that `from` names on; whoever searches for one is led to it."""
        self.refuse_strangers(request)
        form = SearchForm.of(request.GET)
        page, status = EMPTY, HTTPStatus.OK
        if form.is_valid():
            if form.is_payment and of_id(form.text).exists():
                return HttpResponseRedirect(change_href(form.text))
            page, status = find(form, start=request.GET.get("from"))
        shown = {"form": form, "page": page, "query": asked(request), "is_first": "from" not in request.GET}
        context = {
            **self.page_context(request, "Payments", **(extra_context or {})),
            **shown,
            "payments": list(map(ShownPayment, page.rows)),
        }
        return TemplateResponse(request, "admin/payments/payment/change_list.html", context, status=status)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show a payment, and what else its customer has paid."""
        self.refuse_strangers(request)
        payment = payment_of_id(unquote(object_id))
        if payment is None:
            messages.warning(request, "There is no payment of this id.")
            return HttpResponseRedirect(reverse("admin:payments_payment_changelist"))
        context = {
            **self.page_context(request, payment.record.id, **(extra_context or {})),
            **told(payment, Addresses.of(request)),
        }
        return TemplateResponse(request, "admin/payments/payment/change_form.html", context)

    def export_view(self, request: HttpRequest, suffix: str) -> HttpResponse:
        """Give out a part of what is searched for; a `Link` says where the next is (RFC 8288)."""
        self.refuse_strangers(request)
        if suffix not in FORMATS:
            raise Http404
        form = SearchForm.of(request.GET)
        if not form.is_valid() or form.is_payment:
            return refusal("What is searched for cannot be read.", HTTPStatus.BAD_REQUEST)
        try:
            return exported(request, form, FORMATS[suffix])
        except UnknownStart:
            return refusal("The payment with which this part begins is not one of these.", HTTPStatus.NOT_FOUND)
        except OperationalError as error:
            if not is_timeout(error):
                raise
            return refusal(TOO_WIDE, HTTPStatus.SERVICE_UNAVAILABLE)

    def refuse_strangers(self, request: HttpRequest) -> None:
        """Let nobody in who may not see payments, or who wants to do more."""
        if request.method not in {"GET", "HEAD"} or not self.has_view_permission(request):
            raise PermissionDenied


def find(form: SearchForm, *, start: str | None) -> tuple[Page, HTTPStatus]:
    """Return a page of what is searched for, or say on the form why there is none."""
    if form.is_payment:
        form.add_error("q", "There is no payment of this id.")
        return EMPTY, HTTPStatus.OK
    try:
        return fetch_page(listing(form, start), start=start, limit=PAGE_ROWS), HTTPStatus.OK
    except UnknownStart:
        form.add_error(None, "The payment with which this page begins is not one of these.")
        return EMPTY, HTTPStatus.NOT_FOUND
    except OperationalError as error:
        if not is_timeout(error):
            raise
        form.add_error(None, TOO_WIDE)
        return EMPTY, HTTPStatus.SERVICE_UNAVAILABLE


def listing(form: SearchForm, start: str | None) -> Listing:
    """Return what is searched for.

    :raises UnknownStart: where `start` is no payment's id at all
    """
    if start is not None and not re.fullmatch(PAYMENT_ID, start):
        raise UnknownStart(start)
    return Listing(form.access, form.selection)


def payment_of_id(payment_id: str) -> ShownPayment | None:
    found = of_id(payment_id).as_rows() if re.fullmatch(PAYMENT_ID, payment_id) else ()
    return next(map(ShownPayment, found), None)


def of_id(payment_id: str) -> PaymentQuerySet:
    """Return the payments of an id, whosever they are: of each organization where they are distributed by it, one."""
    # Each is named, for there is no index then that begins with the id.
    return Payment.objects.filter(id=payment_id, organization__in=Organization.objects.all())


def told(payment: ShownPayment, addresses: Addresses) -> dict[str, Any]:
    """Return what a payment's page tells."""
    organization = Organization.objects.get(id=payment.record.organization_id)
    access = Access(organization.id, payment.record.mode)
    given = encode(record(payment.row, links=writer(addresses).links(payment.record.id)))
    return {
        "payment": payment,
        "organization": organization,
        "record_text": formatted(given, indent=2).decode(),
        "href": addresses.payment(payment.record.id),
        "others": others(payment, access),
        "scope": urlencode({"organization": access.organization_id, "mode": access.mode}),
    }


def others(payment: ShownPayment, access: Access) -> list[ShownPayment]:
    """Return the latest payments of the same customer, but for this one; none where the customer is not known."""
    customer_id = payment.record.customer_id
    if not customer_id:
        return []
    of_customer = Selection((GivenFilter("customerId", FILTERS["customerId"], (customer_id,)),))
    page = fetch_page(Listing(access, of_customer), start=None, limit=OTHERS_MAX + 1)
    return [ShownPayment(row) for row in page.rows if row[0] != payment.record.id][:OTHERS_MAX]


def exported(request: HttpRequest, form: SearchForm, file_format: Format) -> HttpResponse:
    start = request.GET.get("from")
    part = export_part(listing(form, start), start=start, form=file_format)
    response = HttpResponse(part.content, content_type=file_format.content_type)
    if part.next_from:
        response.headers["Link"] = f'<?{asked(request)}&from={part.next_from}>; rel="next"'
    return response


def refusal(reason: str, status: HTTPStatus) -> HttpResponse:
    response = HttpResponse(reason, status=status, content_type="text/plain; charset=utf-8")
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response


def asked(request: HttpRequest) -> str:
    """Return the query string that asks for the same, wherever it begins."""
    query = request.GET.copy()
    query.pop("from", None)
    return query.urlencode()
