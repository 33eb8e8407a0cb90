"""Records that SQL has changed payments: renews their revisions, and deletes the totals of their days.

This happens at the end of the transaction that changes the payments. It locks their states, so a second transaction
that changes payments of the same organization and mode waits here until the first one has ended. Therefore a reader
that sees a revision sees all changes before it, and none after it. Writes of the ORM renew revisions by themselves
(models/renewal.py).
"""

from collections.abc import Collection

from payments.models import AccessState
from payments.totals import OrganizationDay, delete_totals


def record_changes(days: Collection[OrganizationDay]) -> None:
    """Record that payments of these days have changed. The transaction should end soon, because it holds locks."""
    AccessState.objects.renew({changed.access for changed in days})
    delete_totals(days)
