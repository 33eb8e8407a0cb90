"""Options and argument types that several commands use."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime

from django.core.management.base import CommandError
from django.utils import timezone

from payments.models import Mode, Organization


def add_organization_option(parser: ArgumentParser, *, subject: str) -> None:
    """Add `--organization ID`, which limits a command to one organization. The help calls the records `subject`."""
    parser.add_argument(
        "--organization", type=int, metavar="ID", help=f"only {subject} of this organization (default: all)"
    )


def add_access_options(parser: ArgumentParser) -> None:
    """Add `--organization ID` and `--mode live|test`, which limit a command to some payments."""
    add_organization_option(parser, subject="payments")
    parser.add_argument("--mode", choices=Mode.values, help="only payments of this mode (default: both)")


def find_organization(organization_id: int) -> Organization:
    try:
        return Organization.objects.get(id=organization_id)
    except (Organization.DoesNotExist, OverflowError):
        next_step = f"To create it: manage.py create_organization {organization_id} --name NAME"
        raise CommandError(f"Organization {organization_id} does not exist. {next_step}") from None


def parse_day(text: str) -> datetime:
    """Return the start of a day in UTC. The text has the form YYYY-MM-DD."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ArgumentTypeError(f"{text!r} is not a date such as 2026-01-31")
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a day of the calendar") from None


def parse_past_day(text: str) -> datetime:
    """Return the start of a day in UTC, which must not be in the future. The text has the form YYYY-MM-DD."""
    start = parse_day(text)
    if start > timezone.now():
        raise ArgumentTypeError(f"{text!r} is in the future")
    return start
