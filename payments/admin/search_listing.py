"""Adds a search to the payment list: a filter by search terms, which is found by its index or by reading the list."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

from django.db.models import Value

from payments.filter_types import Filter
from payments.filters import FILTERS, AppliedFilter
from payments.listing import Listing
from payments.models import Payment
from payments.ordering import is_at_or_after
from payments.page import position_of
from payments.search_terms import HasSearchTerms


def terms_filter(*, uses_index: bool) -> Filter:
    """Return a filter by search terms; each of its values is a group of terms."""
    return Filter(
        select=lambda payments, _groups: payments,
        parse=lambda text: (text,),
        rule="search terms",
        schema={"type": "string"},
        example=":84820",
        terms=lambda access, groups: HasSearchTerms(*access, groups, uses_index=uses_index),
        replaces_list=uses_index,
    )


# Beside an index search, an index of terms would only cost time: `currency EUR` is a term of most payments.
WITHOUT_TERMS = {filter_: replace(filter_, terms=None) for filter_ in FILTERS.values()}

INDEX_SEARCH, LIST_SEARCH = terms_filter(uses_index=True), terms_filter(uses_index=False)

# So many payments show whether a search has many results.
SAMPLE_PAYMENTS = 2000
FREQUENT_SHARE = 0.025  # of the payments, for a page of `PAGE_ROWS`
PAGE_ROWS = 50  # of the list


def with_search(listing: Listing, groups: Sequence[str], *, start: str | None, limit: int) -> Listing:
    """Return the listing with a filter by groups of search terms, for a page of `limit` payments from `start`."""
    if not groups:
        return listing
    reads_list = is_frequent(listing, groups, start=start, limit=limit)
    search = AppliedFilter("search", LIST_SEARCH if reads_list else INDEX_SEARCH, tuple(groups))
    selection = listing.selection
    others = selection.filters if reads_list else map(without_terms, selection.filters)
    return listing._replace(selection=selection._replace(filters=(*others, search)))


def without_terms(applied: AppliedFilter) -> AppliedFilter:
    return applied._replace(filter=WITHOUT_TERMS[applied.filter])


def is_frequent(listing: Listing, groups: Sequence[str], *, start: str | None, limit: int) -> bool:
    """Return whether the next payments of the list have so many results that reading the list is faster than the index.

    With the index, the database sorts all results for each page, so its cost grows with their share of the list. The
    cost of reading the list falls with it. So the share at which both are equal grows with the root of `limit`.
    """
    payments = Payment.objects.visible_to(listing.access)
    if start is not None:
        payments = payments.filter(is_at_or_after(position_of(payments, Value(start)), listing.selection.order))
    has_terms = HasSearchTerms(*listing.access, groups, uses_index=False)
    sample = payments.order_by(*listing.selection.order).values_list(has_terms)[:SAMPLE_PAYMENTS]
    results = [bool(result) for (result,) in sample]
    return sum(results) > len(results) * FREQUENT_SHARE * sqrt(limit / PAGE_ROWS)
