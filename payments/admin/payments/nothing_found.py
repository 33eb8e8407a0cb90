"""What a list without payments says: which part of the search fails, and where else it matches.

All of it is optional: statements end early, and the page says if not all organizations were searched.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

from django.db import connection
from django.http import QueryDict
from django.urls import reverse

from payments.admin.payments.display import payment_href
from payments.admin.payments.form import SearchForm
from payments.admin.payments.query import ACCESS_FIELDS, list_query, query_for_words, query_with_text
from payments.admin.payments.search import search_by_index, search_by_list
from payments.admin.scope import Scope
from payments.database.limits import optional_statements
from payments.listing.page import fetch_page
from payments.listing.query import Listing
from payments.models import PAYMENT_ID, Access, Mode
from payments.runtime import time_limits

COUNTED_MAX = 10
ORGANIZATIONS_MAX = 50
SECONDS_MAX = 1.0
ID_CHARACTERS_MIN = 12  # after `pt_`; so few payments have IDs with the same beginning
AFTER_ID_CHARACTERS = "~"


@dataclass(frozen=True)
class Match:
    """A list with another search, organization or mode, and the number of its payments; None if it is unknown."""

    text: str
    query: str
    number: int | None
    mode: str = ""

    @property
    def count(self) -> str:
        if self.number is None:
            return "not counted"
        return f"{COUNTED_MAX} or more" if self.number >= COUNTED_MAX else str(self.number)


@dataclass(frozen=True)
class OtherLists:
    """The other lists with payments, and whether all lists of the user were searched."""

    matches: list[Match]
    is_complete: bool


def count_parts(form: SearchForm) -> list[Match]:
    """Return each part of a search with its number of payments. The form must be valid."""
    return [count_matches(form, query, text=text) for text, query in parts_of(form)]


def search_elsewhere(form: SearchForm) -> OtherLists:
    """Return the same search in the other mode and in both modes of other organizations. The form must be valid.

    Cost: one statement for each of at most `2 * ORGANIZATIONS_MAX` lists, within `SECONDS_MAX`. A statement that takes
    too long is the last one.
    """
    ends_at = monotonic() + SECONDS_MAX
    organizations = list(form.scope.organizations[: ORGANIZATIONS_MAX + 1])
    own = form.cleaned_data["organization"]
    others = [other for other in organizations[:ORGANIZATIONS_MAX] if other != own]
    lists = [(other, mode) for other in (own, *others) for mode in Mode if (other.id, mode) != form.access]
    matches, forms = [], {form.zone: form}  # days depend on the zone
    with optional_statements():
        for organization, mode in lists:
            if monotonic() > ends_at:
                break
            query = list_query(form)
            query["organization"], query["mode"] = str(organization.id), mode.value
            if organization.zone not in forms:
                forms[organization.zone] = form_of(form, query)
            number = count_payments(forms[organization.zone], Access(organization.id, mode))
            matches.append(Match(organization.name, query.urlencode(), number, mode))
    is_complete = len(matches) == len(lists) and len(organizations) <= ORGANIZATIONS_MAX
    return OtherLists([match for match in matches if match.number], is_complete)


def parts_of(form: SearchForm) -> Iterator[tuple[str, QueryDict]]:
    """Yield each part of a search, the whole search as words, and the search without the filters."""
    parts = form.search.parts
    for part in parts if len(parts) > 1 else ():
        yield part.meaning, query_with_text(form, part.text)
    if form.search.has_alternative:
        yield "As text", query_for_words(form)
    if form.selection.filters and list_query(form, without=(*ACCESS_FIELDS, "q", "sort")):
        filters = form.fields.keys() - {*ACCESS_FIELDS, "q"}
        yield "Without the filters", list_query(form, without=filters)


def count_matches(form: SearchForm, query: QueryDict, *, text: str) -> Match:
    """Return the number of payments of the same list with another search."""
    other, number = form_of(form, query), None
    if other.is_valid() and not other.search.payment_id:
        with optional_statements(time_limits.SEARCH_BY_INDEX):
            number = count_payments(other, other.access)
    return Match(text, query.urlencode(), number)


def form_of(form: SearchForm, query: QueryDict) -> SearchForm:
    other = SearchForm.from_query(query, scope=form.scope)
    other.full_clean()
    return other


def count_payments(form: SearchForm, access: Access) -> int:
    """Return the number of payments that a form selects of a list, at most `COUNTED_MAX`."""
    listing, groups = Listing(access, form.selection), form.search.groups
    if groups:
        listing = (search_by_list if connection.vendor == "sqlite" else search_by_index)(listing, groups)
    return len(fetch_page(listing, start=None, limit=COUNTED_MAX).rows)


def longer_words_href(form: SearchForm, counted: Iterable[Match]) -> str | None:
    """Return the address of the list with longer words for the parts that find nothing, if it has payments."""
    failing = {match.text for match in counted if match.number == 0}
    parts = form.search.parts
    texts = [part.beginning if part.meaning in failing or len(parts) == 1 else part.text for part in parts]
    if texts == [part.text for part in parts] or not all(texts):
        return None
    match = count_matches(form, query_with_text(form, " ".join(texts)), text="")
    return f"{reverse('admin:payments_payment_changelist')}?{match.query}" if match.number else None


def href_of_id(form: SearchForm) -> str | None:
    """Return the address of the payment whose ID is the search text, maybe without `pt_` or without its end."""
    text = form.search.payment_id or f"pt_{form.cleaned_data['q'].strip()}"
    payment_id = find_id(text, scope=form.scope) if re.fullmatch(PAYMENT_ID, text) else None
    return payment_id and payment_href(payment_id)


def find_id(text: str, *, scope: Scope) -> str | None:
    """Return the ID of the payment of the scope with this ID, or of the only one whose ID begins with it."""
    if scope.payments.filter(id=text).exists():
        return text
    ids: list[str] = []
    if len(text) >= len("pt_") + ID_CHARACTERS_MIN:
        payments = scope.payments.filter(id__gte=text, id__lt=text + AFTER_ID_CHARACTERS)
        with optional_statements():
            ids = list(payments.values_list("id", flat=True)[:2])
    return ids[0] if len(ids) == 1 else None
