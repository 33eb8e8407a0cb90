"""The payment list of the admin: a page of the payments that match the form, its totals, and the forms around it.

The page of a payment links to the previous and the next payment of the list that it was opened from.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db import OperationalError
from django.http import QueryDict

from payments.admin.forms import access_query
from payments.admin.payments.actions import SaveFilterForm, filter_links, filter_query
from payments.admin.payments.display import PaymentDisplay
from payments.admin.payments.downloads import ExportForm, file_name
from payments.admin.payments.form import TIMED_OUT, SearchForm
from payments.admin.payments.query import chips, list_query, query_for_words, query_of_parts
from payments.admin.payments.search import PAGE_ROWS, SearchedPage, fetch_search
from payments.admin.payments.totals import ListTotals, fetch_list_totals
from payments.admin.preferences import ListColumn, chosen_columns
from payments.admin.scope import Scope
from payments.database.limits import optional_statements
from payments.listing.page import Page, UnknownStart
from payments.listing.query import Listing
from payments.models import PAYMENT_ID, Access, DayKind, StaffPreferences
from payments.models.ordering import NEWEST_FIRST, OLDEST_FIRST
from payments.runtime.database_errors import is_timeout
from payments.totals.figures import DEFINITIONS

# The names of the links to other pages.
PAGE_NAMES = {
    NEWEST_FIRST: {"first": "Newest", "previous": "Newer", "next": "Older"},
    OLDEST_FIRST: {"first": "Oldest", "previous": "Older", "next": "Newer"},
}


class ListedPayments(NamedTuple):
    """A page of the list, its totals, and the status of the response."""

    page: Page = Page([])
    totals: ListTotals | None = None  # None: the page has no payments
    status: HTTPStatus = HTTPStatus.OK


class PageNumbers(NamedTuple):
    """The number of payments before a page, and up to its end. Links between pages pass it on; it can be unknown."""

    before: int | None
    rows: int

    @classmethod
    def of(cls, query: QueryDict, page: Page) -> PageNumbers:
        text = query.get("before", "") if "from" in query else "0"
        return cls(int(text) if re.fullmatch("[0-9]{1,9}", text) else None, len(page.rows))

    def __str__(self) -> str:
        return "" if self.before is None else f"{self.before + 1:,}\u2013{self.before + self.rows:,}"

    @property
    def query_of_next(self) -> str:
        return "" if self.before is None else f"&before={self.before + self.rows}"

    @property
    def query_of_previous(self) -> str:
        return "" if self.before is None else f"&before={max(0, self.before - PAGE_ROWS)}"


def status_of(form: SearchForm) -> HTTPStatus:
    """Return the status of the page: it is an error if the user has an organization, and the form is invalid."""
    is_error = form["organization"].value() and not form.is_valid()
    return HTTPStatus.BAD_REQUEST if is_error else HTTPStatus.OK


def fetch_list(form: SearchForm, *, start: str | None) -> ListedPayments:
    """Return a page of the payments that match the form. If the page cannot be read, add the error to the form."""
    if form.search.payment_id:
        form.add_error("q", f"No payment has the ID {form.search.payment_id}.")
        return ListedPayments()
    try:
        searched = fetch_selected(form, start=start, limit=PAGE_ROWS)
        totals = fetch_list_totals(form, searched) if searched.page.rows else None
        return ListedPayments(searched.page, totals)
    except UnknownStart:
        form.add_error(None, "This page starts at a payment outside the list. View its first page instead.")
        return ListedPayments(status=HTTPStatus.NOT_FOUND)
    except OperationalError as error:
        if not is_timeout(error):
            raise
        form.add_error(None, TIMED_OUT)
        return ListedPayments(status=HTTPStatus.SERVICE_UNAVAILABLE)


def fetch_selected(form: SearchForm, *, start: str | None, limit: int) -> SearchedPage:
    """Return a page of the payments that match the form.

    :raises UnknownStart: the page starts at a payment outside the list
    """
    if start is not None and not re.fullmatch(PAYMENT_ID, start):
        raise UnknownStart(start)
    return fetch_search(Listing(form.access, form.selection), form.search.groups, start=start, limit=limit)


def list_context(user: User | AnonymousUser, form: SearchForm, preferences: StaffPreferences) -> dict[str, Any]:
    """Return the template context of the list beside its payments. The form must be valid."""
    columns = chosen_columns(preferences.columns)
    organization = form.cleaned_data["organization"]
    return {
        "words_query": query_for_words(form).urlencode(),
        "chips": chips(form),
        "columns": [*columns, ListColumn.PAID] if form.kind == DayKind.PAID else columns,
        "column_choices": [(column, column in columns) for column in ListColumn],
        "saved_filters": filter_links(user, form),
        "can_save": bool(filter_query(form)),
        "page_names": PAGE_NAMES[form.selection.order],
        "is_oldest_first": form.selection.order == OLDEST_FIRST,
        "sort_query": list_query(form, without=["sort"]).urlencode(),
        "save_form": SaveFilterForm(),
        "zone": form.zone,
        "period": f"{form.kind.value} {form.days}" if str(form.days) else "",
        "unpaid_query": list_query(form, without=["status"]).urlencode(),
        "definitions": DEFINITIONS,
        "export_form": ExportForm.for_page(preferences.export_options, organization=organization),
        "export_query": query_of_parts(form),
        "export_name": file_name(organization, *form.days, form.kind),
    }


def find_list_context(query: QueryDict, payment: PaymentDisplay, *, scope: Scope) -> dict[str, Any]:
    """Return the query string of a list, and a payment's page of the list with the names of its links.

    Without a query, and if the list cannot contain the payment, it is the list of the payment's organization and mode.
    """
    access = Access(int(payment.record.organization_id), payment.record.mode)
    own_query = QueryDict(access_query(access))
    form = SearchForm.from_query(query or own_query, scope=scope)
    if not form.is_valid() or form.access != access or form.search.payment_id:
        return {"query": own_query.urlencode()}
    names = PAGE_NAMES[form.selection.order]
    return {"query": list_query(form).urlencode(), "names": names, "page": find_position(form, payment.record.id)}


def find_position(form: SearchForm, payment_id: str) -> Page | None:
    """Return the page that starts at a payment; None if the payment does not match, or a statement timed out."""
    with optional_statements():
        page = fetch_selected(form, start=payment_id, limit=1).page
        if page.first_id == payment_id:
            return page
    return None
