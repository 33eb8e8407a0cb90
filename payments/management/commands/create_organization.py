"""Create an organization."""

from argparse import ArgumentParser
from typing import Any

from payments.management.command import PaymentsCommand
from payments.models import Organization
from payments.models.organization import default_time_zone


class Command(PaymentsCommand):
    """`create_organization ID --name NAME [--time-zone ZONE]`."""

    help = """
        Create an organization, which owns payments and API keys.

        The ID is the organizationId of its payments. Only staff see the name. Totals
        and the admin use the days of the time zone.
    """
    examples = (
        'manage.py create_organization 7 --name "Books"',
        'manage.py create_organization 7 --name "Books" --time-zone Europe/Amsterdam',
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="ID", help="an unused whole number, at least 1")
        parser.add_argument("--name", required=True, help="a name for staff: one line of at most 200 characters")
        parser.add_argument(
            "--time-zone",
            default=default_time_zone(),
            metavar="ZONE",
            help="an IANA name, such as Europe/Amsterdam (default: DEFAULT_TIME_ZONE, here %(default)s)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        organization = Organization(id=options["id"], name=options["name"], time_zone=options["time_zone"])
        organization.full_clean()
        organization.save(force_insert=True)
        self.write_success(
            f"Created organization {organization.id}, {organization.name}.",
            f"Next: manage.py create_api_key --organization {organization.id} --mode test --name NAME",
        )
