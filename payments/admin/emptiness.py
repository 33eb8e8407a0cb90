"""Why a list has no payments, and what to do next."""

from enum import StrEnum

from payments.admin.search import SearchForm
from payments.models import Access, Mode, Payment


class Emptiness(StrEnum):
    """The reason for which a list has no payments."""

    NO_MATCH = "no match"  # the list has filters, or a search
    OTHER_MODE = "other mode"  # the organization has payments in the other mode only
    NO_PAYMENTS = "no payments"  # the organization has none at all


def explain_emptiness(form: SearchForm) -> Emptiness:
    """Return why the first page of a list has no payments. The form is valid.

    It costs at most one query, which reads one entry of the list's index.
    """
    if form.selection.filters or form.search.groups:
        return Emptiness.NO_MATCH
    return explain_absence(form.access)


def explain_absence(access: Access) -> Emptiness:
    """Return why an organization and mode have no payments. It costs one query."""
    has_payments = Payment.objects.visible_to(other_mode(access)).exists()
    return Emptiness.OTHER_MODE if has_payments else Emptiness.NO_PAYMENTS


def other_mode(access: Access) -> Access:
    return access._replace(mode=Mode.TEST if access.mode == Mode.LIVE else Mode.LIVE)
