"""Makes a test's database one that was restored."""

from payments.models import AccessState, Change


def restore(number: int) -> None:
    """Make the change with this number the newest one, as it was in a backup. There is one organization and mode."""
    change_id = Change.objects.get(number=number).change_id
    Change.objects.filter(number__gt=number).delete()
    AccessState.objects.update(change_number=number, change_id=change_id, revision=change_id)
