"""The place of a payment in the list that its page was opened from: the previous payment and the next one."""

from typing import NamedTuple
from urllib.parse import urlencode

from django.http import QueryDict

from payments.admin.display import PaymentDisplay, payment_href
from payments.admin.list_query import list_query
from payments.admin.search import SearchForm
from payments.admin.search_listing import with_search
from payments.database.limits import optional_statements
from payments.listing import Listing
from payments.models import Access
from payments.ordering import NEWEST_FIRST
from payments.page import EMPTY_PAGE, fetch_page
from payments.rows import ID


class Neighbour(NamedTuple):
    """A link to the previous or the next payment; `href` is None at the end of the list."""

    relation: str
    label: str
    href: str | None


class Place(NamedTuple):
    """The list's query string, and the links to the neighbours of a payment. There are none if they are unknown."""

    query: str
    neighbours: tuple[Neighbour, ...] = ()


def find_place(query: QueryDict, payment: PaymentDisplay) -> Place:
    """Return the place of a payment in the list of a query string.

    Without a query, and if the list cannot contain the payment, it is the list of the payment's organization and mode.
    """
    access = Access(int(payment.record.organization_id), payment.record.mode)
    own_query = QueryDict(urlencode({"organization": access.organization_id, "mode": access.mode}))
    form = SearchForm.from_query(query or own_query)
    if not form.is_valid() or form.access != access or form.search.payment_id:
        return Place(own_query.urlencode())
    return Place(list_query(form).urlencode(), find_neighbours(form, payment.record.id))


def find_neighbours(form: SearchForm, payment_id: str) -> tuple[Neighbour, ...]:
    """Return the links to the neighbours; an empty tuple if the payment does not match or the query timed out."""
    listing = Listing(form.access, form.selection)
    page = EMPTY_PAGE
    with optional_statements():
        listing = with_search(listing, form.search.groups, start=payment_id, limit=1)
        page = fetch_page(listing, start=payment_id, limit=1)
    if [row[ID] for row in page.rows] != [payment_id]:
        return ()
    ids = {"prev": page.previous_from, "next": page.next_from}
    labels = ("Newer", "Older") if form.selection.order == NEWEST_FIRST else ("Older", "Newer")
    query = list_query(form).urlencode()
    return tuple(
        Neighbour(relation, label, other and f"{payment_href(other)}?{query}")
        for label, (relation, other) in zip(labels, ids.items(), strict=True)
    )
