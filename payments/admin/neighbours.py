"""The position of a payment in the list that its page was opened from: the previous payment and the next one."""

from typing import NamedTuple

from django.http import QueryDict

from payments.admin.access_form import access_query
from payments.admin.display import PaymentDisplay, payment_href
from payments.admin.list_query import list_query
from payments.admin.payment_list import PAGE_NAMES, fetch_selected
from payments.admin.search import SearchForm
from payments.database.limits import optional_statements
from payments.models import Access
from payments.rows import ID


class Neighbour(NamedTuple):
    """A link to the previous or the next payment; `href` is None at the end of the list."""

    relation: str
    label: str
    href: str | None


class ListPosition(NamedTuple):
    """The list's query string, and the links to the neighbours of a payment. There are none if they are unknown."""

    query: str
    neighbours: tuple[Neighbour, ...] = ()


def find_position(query: QueryDict, payment: PaymentDisplay) -> ListPosition:
    """Return the position of a payment in the list of a query.

    Without a query, and if the list cannot contain the payment, it is the list of the payment's organization and mode.
    """
    access = Access(int(payment.record.organization_id), payment.record.mode)
    own_query = QueryDict(access_query(access))
    form = SearchForm.from_query(query or own_query)
    if not form.is_valid() or form.access != access or form.search.payment_id:
        return ListPosition(own_query.urlencode())
    return ListPosition(list_query(form).urlencode(), find_neighbours(form, payment.record.id))


def find_neighbours(form: SearchForm, payment_id: str) -> tuple[Neighbour, ...]:
    """Return the links to the neighbours; an empty tuple if the payment does not match, or a statement timed out."""
    with optional_statements():
        page = fetch_selected(form, start=payment_id, limit=1).page
        if [row[ID] for row in page.rows] == [payment_id]:
            names = PAGE_NAMES[form.selection.order]
            return (
                Neighbour("prev", names.previous, neighbour_href(form, page.previous_from)),
                Neighbour("next", names.next, neighbour_href(form, page.next_from)),
            )
    return ()


def neighbour_href(form: SearchForm, payment_id: str | None) -> str | None:
    return payment_id and f"{payment_href(payment_id)}?{list_query(form).urlencode()}"
