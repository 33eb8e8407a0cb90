"""Which revisions an action renews, and databases that were restored."""

import re
from collections.abc import Callable

from django.test.utils import CaptureQueriesContext

from payments.models import Access, AccessState, Change


def revisions() -> dict[Access, int]:
    """Return the revisions of all organizations and modes with a row."""
    rows = AccessState.objects.values_list("organization_id", "mode", "revision")
    return {Access(organization_id, mode): revision for organization_id, mode, revision in rows}


def renewed_by(action: Callable[[], object]) -> set[Access]:
    """Return the organizations and modes whose revision changes during the action."""
    before = revisions()
    action()
    return {access for access, revision in revisions().items() if revision != before.get(access, 0)}


def written_states(queries: CaptureQueriesContext) -> list[Access]:
    """Return the organizations and modes whose states were written, in order. Each is locked just before."""
    pattern = re.compile(r'UPDATE "payments_accessstate" .*"mode" = \'(\w+)\' AND .*"organization_id" = (\d+)')
    matches = filter(None, (pattern.match(query["sql"]) for query in queries))
    return [Access(int(match[2]), match[1]) for match in matches]


def restore(number: int) -> None:
    """Make the change with this number the newest one, as it was in a backup. There is one organization and mode."""
    change_id = Change.objects.get(number=number).change_id
    Change.objects.filter(number__gt=number).delete()
    AccessState.objects.update(change_number=number, change_id=change_id, revision=change_id)
