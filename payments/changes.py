"""Records that payments have changed: deletes the totals of their days, and renews their organizations' revisions.

This happens at the end of the transaction that changes the payments. It locks the organizations, so a second
transaction that changes payments of the same organization waits here until the first one has ended. Therefore a reader
that sees a revision sees all changes before it, and none after it.
"""

import secrets
from collections.abc import Collection

from payments.models import REVISION_BITS, Organization
from payments.totals import OrganizationDay, delete_totals


def record_changes(days: Collection[OrganizationDay]) -> None:
    """Record that payments of these days have changed. The transaction should end soon, because it holds locks."""
    delete_totals(days)
    renew_revision({changed.organization_id for changed in days})


def renew_revision(organization_ids: Collection[int]) -> None:
    """Give organizations a new revision. To renew several revisions, lock the organizations first, in order."""
    # Random, not counted: a server that lost contact with the others could count to the same number.
    revision = secrets.randbits(REVISION_BITS)
    Organization.objects.filter(id__in=organization_ids).update(revision=revision)
