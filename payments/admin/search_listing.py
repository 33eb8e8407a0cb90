"""Adds a search to the payment list: a filter by search terms, which is found by its index or by reading the list."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

from django.db.models import Subquery, Value

from payments.filter_types import Filter
from payments.filters import FILTERS, AppliedFilter
from payments.listing import Listing
from payments.models import Payment
from payments.ordering import is_at_or_after, position
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

# So many payments show whether a search has many results. Reading their terms takes PostgreSQL 20 ms.
SAMPLE_PAYMENTS = 2000
FREQUENT_SHARE = 0.025  # of a page with `PAGE_ROWS`
PAGE_ROWS = 50  # of the list


def with_search(listing: Listing, groups: Sequence[str], *, start: str | None, limit: int) -> Listing:
    """Return the listing with a filter by groups of search terms, for a page of `limit` payments from `start`."""
    if not groups:
        return listing
    reads_list = is_frequent(listing, groups, start=start, limit=limit)
    search = AppliedFilter("search", LIST_SEARCH if reads_list else INDEX_SEARCH, tuple(groups))
    filters = (*(listing.selection.filters if reads_list else map(without_terms, listing.selection.filters)), search)
    return listing._replace(selection=listing.selection._replace(filters=filters))


def without_terms(applied: AppliedFilter) -> AppliedFilter:
    return applied._replace(filter=WITHOUT_TERMS[applied.filter])


def is_frequent(listing: Listing, groups: Sequence[str], *, start: str | None, limit: int) -> bool:
    """Return whether the next payments of the list have so many results that reading the list is faster than the index.

    With the index, the database sorts all results for each page. At 10 million payments, both take the same time if a
    page of 50 has 1 % of the list as results, and a page of 5,000 has 10 %.
    """
    payments = Payment.objects.visible_to(listing.access)
    if start is not None:
        at = position(Subquery(payments.filter(id=start).values("created_at")), Value(start))
        payments = payments.filter(is_at_or_after(at, listing.selection.order))
    has_terms = HasSearchTerms(*listing.access, groups, uses_index=False)
    sample = payments.order_by(*listing.selection.order).values_list(has_terms)[:SAMPLE_PAYMENTS]
    results = [bool(result) for (result,) in sample]
    return sum(results) > len(results) * FREQUENT_SHARE * sqrt(limit / PAGE_ROWS)
