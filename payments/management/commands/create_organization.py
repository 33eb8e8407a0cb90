"""Create an organization, whose payments and keys can then be made."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from payments.management.command import ExplainedCommand
from payments.models import Organization


class Command(ExplainedCommand):
    """`create_organization ID --name NAME`."""

    help = """
        Create an organization, to whom payments and keys belong.

        Its ID is the organizationId of its payments. Its name is shown to operators
        alone.
    """
    examples = ('manage.py create_organization 7 --name "Books"',)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="ID", help="a whole number, 1 or greater, that no other has")
        parser.add_argument("--name", required=True, help="what people call it: one line, of 200 characters at most")

    def handle(self, *_args: Any, **options: Any) -> None:
        organization = Organization(id=options["id"], name=options["name"])
        try:
            organization.full_clean()
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        organization.save(force_insert=True)
        self.tell(
            f"Organization {organization.id}, {organization.name}, is made.",
            f"Next: manage.py create_api_key --organization {organization.id} --mode test --name NAME",
        )
