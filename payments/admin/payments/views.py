"""Payments in the admin: a list that is paged like the API's, a page for one payment, and exports."""

import re
from functools import partial
from http import HTTPStatus
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from msgspec.json import format as format_json

from payments.admin.base import RELOAD_HEADERS, ReadOnlyAdmin, error_text, headers_of
from payments.admin.forms import access_query, header_context
from payments.admin.payments.actions import columns_view, delete_filter_view, export_options_view, save_filter_view
from payments.admin.payments.anonymize import anonymize_view
from payments.admin.payments.display import PaymentDisplay
from payments.admin.payments.downloads import InvalidExport, query_of_options, requested_file
from payments.admin.payments.form import TIMED_OUT, SearchForm
from payments.admin.payments.list import (
    ListedPayments,
    PageNumbers,
    fetch_list,
    fetch_selected,
    find_list_context,
    list_context,
    status_of,
)
from payments.admin.payments.marks import Marks
from payments.admin.payments.nothing_found import count_parts, href_of_id, longer_words_href, search_elsewhere
from payments.admin.payments.query import filter_names, list_query, query_of_parts
from payments.admin.payments.reads import record_read
from payments.admin.scope import Scope
from payments.admin.switcher import switch_view
from payments.api.links import Links
from payments.api.serializers import build_records
from payments.conf import conf
from payments.export.bookkeeping import Book
from payments.export.files import FORMATS, Format
from payments.listing.filters import parse_selection
from payments.listing.page import UnknownStart, fetch_page
from payments.listing.query import Listing
from payments.models import PAYMENT_ID, Access, Payment, ReadKind, StatusChange
from payments.record import encode
from payments.rows import select_columns
from payments.runtime.database_errors import is_timeout
from payments.runtime.process import process
from payments.runtime.shares import NoPlace

CUSTOMER_PAYMENTS_MAX = 5
STATUS_CHANGES_MAX = 50  # the newest ones


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    """Staff can only view payments: imports write them."""

    def get_urls(self) -> list[Any]:
        views: dict[str, tuple[str, Any]] = {
            "export.<str:suffix>": ("export", self.export_view),
            "anonymize/": ("anonymize", partial(anonymize_view, self)),
            "save-filter": ("save_filter", save_filter_view),
            "delete-filter": ("delete_filter", delete_filter_view),
            "columns": ("columns", columns_view),
            "export-options": ("export_options", export_options_view),
            "switch/": ("switch", switch_view),
        }
        limited = self.admin_site.admin_view
        own = [path(route, limited(view), name=f"payments_payment_{name}") for route, (name, view) in views.items()]
        return [*own, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """List the payments that match the form, from the payment `from` on. Redirect a search for a payment ID."""
        self.require_view_permission(request)
        form, preferences = SearchForm.of_request(request)
        payments, extra = ListedPayments(status=status_of(form)), {}
        if form.has_access:
            form.offer_known_words()
        if form.is_valid():
            if form.search.payment_id and (href := href_of_id(form)):
                return HttpResponseRedirect(href)
            extra = list_context(request.user, form, preferences)
            payments = fetch_list(form, start=request.GET.get("from"))
            rows = payments.page.rows
            if form.is_valid():  # reading the list can add an error
                record_read(request.user, ReadKind.LIST, form.access, rows, filters=filter_names(form))
                if not rows and form.search.parts and "from" not in request.GET:
                    parts = count_parts(form)
                    if href := href_of_id(form) or longer_words_href(form, parts):
                        return HttpResponseRedirect(href)
                    extra |= {"parts": parts, "elsewhere": search_elsewhere(form)}
        displays, marks = list(map(PaymentDisplay, payments.page.rows)), Marks.of(form.search)
        context = self.page_context(
            request,
            **form.page_context("Payments"),
            form=form,
            page=payments.page,
            totals=payments.totals,
            payments=displays,
            query=list_query(form).urlencode(),
            is_first_page="from" not in request.GET,
            numbers=PageNumbers.of(request.GET, payments.page),
            marks=marks,
            **extra | {"columns": marks.with_matched_columns(extra.get("columns", ()), displays)},
        )
        totals = payments.totals
        headers = RELOAD_HEADERS if totals and totals.missing_days and totals.goes_on else headers_of(payments.status)
        template = "admin/payments/payment/change_list.html"
        return TemplateResponse(request, template, context, status=payments.status, headers=headers)

    def change_view(self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any) -> HttpResponse:
        """Show a payment, its neighbours in the list of the query, and other payments by the same customer."""
        self.require_view_permission(request)
        scope = Scope.of(request.user)
        payments = get_payments(unquote(object_id), scope=scope, organization_id=request.GET.get("organization"))
        if not payments:
            messages.warning(request, "No payment has this ID.")
            return HttpResponseRedirect(reverse("admin:payments_payment_changelist"))
        payment, *others = payments
        access = Access(int(payment.record.organization_id), payment.record.mode)
        organization = scope.organizations.get(id=access.organization_id)
        record_read(request.user, ReadKind.PAYMENT, access, [payment.row])
        customer_payments = other_customer_payments(payment, access)
        if customer_payments:
            rows = [other.row for other in customer_payments]
            record_read(request.user, ReadKind.LIST, access, rows, filters=["customerId"])
        links = Links.of(request)
        context = self.page_context(
            request,
            **header_context(organization, payment.record.id, access.mode),
            payment=payment,
            zone=organization.zone,
            api_response=format_json(encode(build_records([payment.row], links=links)[0]), indent=2).decode(),
            api_href=links.payment(payment.record.id),
            page_link=f"{request.build_absolute_uri(payment.href)}?{access_query(access)}",
            customer_payments=customer_payments,
            position=find_list_context(request.GET, payment, scope=scope),
            others_with_id=others,
        )
        return TemplateResponse(request, "admin/payments/payment/change_form.html", context)

    def history_view(self, *_args: Any, **_options: Any) -> HttpResponse:
        """Respond that there is no history: the admin does not change payments."""
        raise Http404

    def delete_view(self, *_args: Any, **_options: Any) -> HttpResponse:
        """Refuse without reading the payment, which Django would do first."""
        raise PermissionDenied

    def export_view(self, request: HttpRequest, suffix: str) -> HttpResponse:
        """Return a part of the file. Its `Link` header leads to the next part (RFC 8288)."""
        self.require_view_permission(request)
        if suffix not in FORMATS:
            raise Http404
        form = SearchForm.from_query(request.GET, scope=Scope.of(request.user))
        if not form.is_valid() or form.search.payment_id:
            return error_text("The search is invalid. Correct it and export again.", HTTPStatus.BAD_REQUEST)
        try:
            file = requested_file(request.GET, suffix, organization=form.cleaned_data["organization"])
            return export_response(request, form, file)
        except InvalidExport as error:
            return error_text(str(error), HTTPStatus.BAD_REQUEST)
        except NoPlace:
            return error_text("Another export is running. Try again in a second.", HTTPStatus.SERVICE_UNAVAILABLE)
        except UnknownStart:
            return error_text("This part starts at a payment outside the list. Export again.", HTTPStatus.NOT_FOUND)
        except OperationalError as error:
            if not is_timeout(error):
                raise
            return error_text(TIMED_OUT, HTTPStatus.SERVICE_UNAVAILABLE)


def get_payments(payment_id: str, *, scope: Scope, organization_id: str | None) -> list[PaymentDisplay]:
    """Return the payments of the scope with this ID. The payment of the organization comes first."""
    if not re.fullmatch(PAYMENT_ID, payment_id):
        return []
    statuses = scope.limit(StatusChange.objects.filter(payment_id=payment_id).order_by("-change_id"))
    changes = list(statuses[:STATUS_CHANGES_MAX])
    payments = []
    for *values, number, change_id, anonymized_at in select_columns(
        scope.payments.filter(id=payment_id), "organization_id", "change_id", "anonymized_at"
    ):
        own_changes = [change for change in changes if change.organization_id == number]
        payments.append(PaymentDisplay(tuple(values), change_id, anonymized_at, own_changes))
    return sorted(payments, key=lambda payment: payment.record.organization_id != organization_id)


def other_customer_payments(payment: PaymentDisplay, access: Access) -> list[PaymentDisplay]:
    """Return the customer's latest payments without this one; an empty list if the customer is unknown."""
    customer_id = payment.record.customer_id
    if not customer_id:
        return []
    listing = Listing(access, parse_selection({"customerId": customer_id}))
    payments = map(PaymentDisplay, fetch_page(listing, start=None, limit=CUSTOMER_PAYMENTS_MAX + 1).rows)
    return [other for other in payments if other.record.id != payment.record.id][:CUSTOMER_PAYMENTS_MAX]


def export_response(request: HttpRequest, form: SearchForm, file: Format | Book) -> HttpResponse:
    """Return a part of an export.

    :raises NoPlace: the worker is writing another part
    """
    start = request.GET.get("from")
    with process.shares.exports():
        page = fetch_selected(form, start=start, limit=conf.EXPORT_PART_ROWS).page
        content = (file.start if start is None else b"") + file.write(page.rows)
    record_read(request.user, ReadKind.EXPORT, form.access, page.rows, filters=filter_names(form))
    if not page.next_from:
        return HttpResponse(content + file.end(), content_type=file.content_type)
    response = HttpResponse(content, content_type=file.content_type)
    next_query = f"{query_of_parts(form)}{query_of_options(request.GET, file)}&from={page.next_from}"
    response.headers["Link"] = f'<?{next_query}>; rel="next"'
    return response
