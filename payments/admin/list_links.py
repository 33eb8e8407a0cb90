"""Links to the payment list, with the values of its form."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django.urls import reverse

from payments.admin.periods import Period
from payments.models import Access


def access_query(access: Access) -> str:
    """Return an organization and mode as a query string, for links to pages that have both."""
    return urlencode({"organization": access.organization_id, "mode": access.mode})


def list_href(
    access: Access, period: Period, *, statuses: Sequence[str] = (), methods: Sequence[str] = (), currency: str = ""
) -> str:
    """Return the URL of the list of an organization's payments in a period."""
    values = {
        "status": statuses,
        "method": methods,
        "currency": currency or (),
        "since": period.first,
        "until": period.last,
    }
    return f"{reverse('admin:payments_payment_changelist')}?{access_query(access)}&{urlencode(values, doseq=True)}"
