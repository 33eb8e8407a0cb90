"""Makes a test's database one that was restored, or that has just begun to record changes."""

from payments.models import AccessState, Change
from tests.support.sql import execute


def restore(number: int) -> None:
    """Make the change with this number the newest one, as it was in a backup. There is one organization and mode."""
    change_id = Change.objects.get(number=number).change_id
    Change.objects.filter(number__gt=number).delete()
    AccessState.objects.update(change_number=number, change_id=change_id, revision=change_id)


def begin_feed() -> None:
    """Make the database as it is after the migration that begins to record changes."""
    Change.objects.all().delete()
    execute("UPDATE payments_payment SET change_id = NULL")
    execute("UPDATE payments_accessstate SET change_number = 0, change_id = revision, epoch = revision")
