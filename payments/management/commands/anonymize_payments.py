"""Blank the personal data of payments."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError
from django.db import OperationalError
from django.utils import timezone
from tqdm import tqdm

from payments.anonymization import anonymize_payments
from payments.management.arguments import find_organization
from payments.management.command import ExplainedCommand
from payments.models import CUSTOMER_ID, Access, Mode, Organization


class Command(ExplainedCommand):
    """`anonymize_payments (--before DATE | --customer ID) [--organization ID] [--mode live|test] [--dry-run]`."""

    help = """
        Blank description, URLs, metadata, details and customer of payments created
        before a day, or of a customer's.

        Their ids, times, amounts and statuses stay, and each payment its place in the
        list. Running it again changes nothing; importing an old file again brings back
        what it holds. Ended half-way, it has done half, and can be run again.
    """
    examples = (
        "manage.py anonymize_payments --before 2020-01-01 --dry-run",
        "manage.py anonymize_payments --before 2020-01-01 --organization 7 --mode live",
        "manage.py anonymize_payments --customer ct_7",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        chosen = parser.add_mutually_exclusive_group(required=True)
        chosen.add_argument(
            "--before", type=day, metavar="DATE", help="payments created before this day, such as 2020-01-01, in UTC"
        )
        chosen.add_argument(
            "--customer",
            type=customer,
            metavar="ID",
            help="payments of this customer, whatever their age: ct_ and letters or digits",
        )
        parser.add_argument(
            "--organization", type=int, metavar="ID", help="only the payments of this one (default: of all)"
        )
        parser.add_argument("--mode", choices=Mode.values, help="only the payments of this mode (default: of both)")
        parser.add_argument("--dry-run", action="store_true", help="say how many it would be, and change nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        changed = 0
        with tqdm(unit=" payments", disable=None) as progress:
            for access in accesses(options["organization"], options["mode"]):
                try:
                    changed += anonymize_payments(
                        access,
                        before=options["before"],
                        customer_id=options["customer"],
                        dry_run=options["dry_run"],
                        on_progress=progress.update,
                    )
                except OperationalError as error:
                    reason, _, _ = str(error).partition("\n")
                    raise CommandError(f"The database failed: {reason}. Run it again: the rest will follow.") from error
        if options["dry_run"]:
            self.tell(f"{changed} payments would be blanked.", "Next: the same without --dry-run")
        else:
            self.tell(f"{changed} payments blanked.")


def accesses(organization_id: int | None, mode: str | None) -> list[Access]:
    if organization_id is not None:
        ids = [find_organization(organization_id).id]
    else:
        ids = list(Organization.objects.order_by("id").values_list("id", flat=True))
    modes = Mode.values if mode is None else [mode]
    return [Access(organization_id, mode) for organization_id in ids for mode in modes]


def day(text: str) -> datetime:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ArgumentTypeError(f"{text!r} is no date, such as 2026-01-31")
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no day of the calendar") from None
    if moment > timezone.now():
        raise ArgumentTypeError(f"{text!r} is in the future")
    return moment


def customer(text: str) -> str:
    if not re.fullmatch(CUSTOMER_ID, text):
        raise ArgumentTypeError(f"{text!r} is no customer's id, such as ct_7")
    return text
