"""Arguments that several commands take."""

from django.core.management.base import CommandError

from payments.models import Organization


def find_organization(organization_id: int) -> Organization:
    """Return the organization that an argument names.

    :raises CommandError: where there is none
    """
    try:
        return Organization.objects.get(id=organization_id)
    except (Organization.DoesNotExist, OverflowError):
        raise CommandError(f"There is no organization {organization_id}.") from None
