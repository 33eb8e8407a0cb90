"""Adds a search to the payment list: a filter by search terms, which is found by its index or by reading the list."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

from django.db import OperationalError, connection
from django.db.models import Value

from payments.database.limits import statement_limit
from payments.listing.filter_types import Filter
from payments.listing.filters import FILTERS, AppliedFilter
from payments.listing.page import Page, fetch_page, position_of
from payments.listing.query import Listing
from payments.listing.search_terms import HasSearchTerms
from payments.models import Payment
from payments.models.ordering import is_at_or_after
from payments.runtime import time_limits
from payments.runtime.database_errors import is_timeout


def terms_filter(*, uses_index: bool) -> Filter:
    """Return a filter by search terms; each of its values is a group of terms."""
    return Filter(
        select=lambda payments, _groups: payments,
        parse=lambda text: (text,),
        effect="only payments with these search terms",
        kind="TERMS",
        rule="search terms",
        schema={"type": "string"},
        example=":84820",
        terms=lambda access, groups: HasSearchTerms(*access, groups, uses_index=uses_index),
        has_own_index=uses_index,
    )


# Beside an index search, an index of terms would only cost time: `currency EUR` is a term of most payments.
WITHOUT_TERMS = {filter_: replace(filter_, terms=None) for filter_ in FILTERS.values()}

INDEX_SEARCH, LIST_SEARCH = terms_filter(uses_index=True), terms_filter(uses_index=False)

# So many payments show whether a search has many results.
SAMPLE_PAYMENTS = 2000
FREQUENT_SHARE = 0.025  # of the payments, for a page of `PAGE_ROWS`
PAGE_ROWS = 50  # of the list


class Sample(NamedTuple):
    """The share of results among some payments, and whether these are all payments of the period."""

    share: float
    is_all: bool


class SearchedPage(NamedTuple):
    """A page of a listing, the listing with the search, and whether the search has too many results to count them."""

    page: Page
    listing: Listing
    has_many_results: bool = False


def fetch_search(listing: Listing, groups: Sequence[str], *, start: str | None, limit: int) -> SearchedPage:
    """Return a page of the listing's payments that have a term of each group. Without groups, it is the listing's page.

    On PostgreSQL, the index of terms is tried first. If that takes too long, the search has many results.

    :raises UnknownStart: see `fetch_page`
    """
    if not groups:
        return SearchedPage(fetch_page(listing, start=start, limit=limit), listing)
    if connection.vendor == "sqlite":  # it has no index of terms
        searched = search_by_list(listing, groups)
        return SearchedPage(fetch_page(searched, start=start, limit=limit), searched)
    by_index = search_by_index(listing, groups)
    try:
        with statement_limit(time_limits.SEARCH_BY_INDEX):
            return SearchedPage(fetch_page(by_index, start=start, limit=limit), by_index)
    except OperationalError as error:
        if not is_timeout(error):
            raise
    sample = take_sample(listing, groups, start=start)
    faster = faster_search(listing, groups, sample, limit=limit)
    return SearchedPage(fetch_page(faster, start=start, limit=limit), faster, has_many_results=not sample.is_all)


def faster_search(listing: Listing, groups: Sequence[str], sample: Sample, *, limit: int) -> Listing:
    """Return the listing with a search that has many results: by the index, or by reading the list.

    With the index, the database sorts all results for each page, so its cost grows with their share of the list. The
    cost of reading the list falls with it. So the share at which both are equal grows with the root of `limit`.
    """
    if sample.is_all or sample.share > FREQUENT_SHARE * sqrt(limit / PAGE_ROWS):
        return search_by_list(listing, groups)
    return search_by_index(listing, groups)


def search_by_list(listing: Listing, groups: Sequence[str]) -> Listing:
    return with_search(listing, listing.selection.filters, AppliedFilter("search", LIST_SEARCH, tuple(groups)))


def search_by_index(listing: Listing, groups: Sequence[str]) -> Listing:
    filters = [applied._replace(filter=WITHOUT_TERMS[applied.filter]) for applied in listing.selection.filters]
    return with_search(listing, filters, AppliedFilter("search", INDEX_SEARCH, tuple(groups)))


def with_search(listing: Listing, filters: Sequence[AppliedFilter], search: AppliedFilter) -> Listing:
    return listing._replace(selection=listing.selection._replace(filters=(*filters, search)))


def take_sample(listing: Listing, groups: Sequence[str], *, start: str | None) -> Sample:
    """Return the share of results among the next payments of the list, within its period."""
    payments = Payment.objects.visible_to(listing.access)
    if start is not None:
        payments = payments.filter(is_at_or_after(position_of(payments, Value(start)), listing.selection.order))
    for applied in listing.selection.filters:
        if "createdAt[" in applied.name:
            payments = applied.filter.select(payments, applied.values)
    has_terms = HasSearchTerms(*listing.access, groups, uses_index=False)
    rows = payments.order_by(*listing.selection.order).values_list(has_terms)[:SAMPLE_PAYMENTS]
    results = [bool(result) for (result,) in rows]
    return Sample(sum(results) / max(1, len(results)), is_all=len(results) < SAMPLE_PAYMENTS)
