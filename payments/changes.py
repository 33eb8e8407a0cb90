"""Word that payments were changed, left by whoever changed some, at the end of the same transaction.

Of two transactions that change payments of one organization, one has ended before the other goes on from there. So
whoever sees a revision sees all changes that came before it, and none that came after.
"""

import secrets
from collections.abc import Collection

from payments.models import REVISION_BITS, Organization
from payments.totals import PlacedDay, forget_days


def note_changes(days: Collection[PlacedDay]) -> None:
    """Have it known that payments of these days were changed; the transaction must end soon, for others wait for it."""
    forget_days(days)
    renew_revision({organization_id for organization_id, _, _ in days})


def renew_revision(organization_ids: Collection[int]) -> None:
    """Give the payments of organizations a new revision. Who has several has locked them before, in order."""
    revision = secrets.randbits(REVISION_BITS)  # not counted: a server that went its own way might count as far
    Organization.objects.filter(id__in=organization_ids).update(revision=revision)
