"""Which revisions an action renews."""

from collections.abc import Callable

from payments.models import Access, AccessState


def revisions() -> dict[Access, int]:
    """Return the revisions of all organizations and modes with a row."""
    rows = AccessState.objects.values_list("organization_id", "mode", "revision")
    return {Access(organization_id, mode): revision for organization_id, mode, revision in rows}


def renewed_by(action: Callable[[], object]) -> set[Access]:
    """Return the organizations and modes whose revision changes during the action."""
    before = revisions()
    action()
    return {access for access, revision in revisions().items() if revision != before.get(access, 0)}
