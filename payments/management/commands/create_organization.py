"""Create an organization, whose payments and keys can then be made."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from payments.models import Organization


class Command(BaseCommand):
    """`create_organization ID --name NAME`."""

    help = "Create an organization. Its ID is the organizationId of its payments."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, metavar="ID", help="a positive whole number")
        parser.add_argument("--name", required=True, help="what people call it")

    def handle(self, *_args: Any, **options: Any) -> None:
        organization = Organization(id=options["id"], name=options["name"])
        try:
            organization.full_clean()
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        organization.save(force_insert=True)
        self.stderr.write(f"Organization {organization.id}, {organization.name}, is made.", self.style.SUCCESS)
        self.stderr.write(f"Next: manage.py create_api_key --organization {organization.id} --mode test --name NAME")
