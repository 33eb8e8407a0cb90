"""Remove the personal data of payments."""

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import CommandError
from django.db import OperationalError, connection
from tqdm import tqdm

from payments.anonymization import anonymize_payments
from payments.management.command import PaymentsCommand
from payments.management.failures import first_line
from payments.management.options import add_access_options, find_organization, parse_past_day
from payments.models import CUSTOMER_ID, Access, Mode, Organization
from payments.runtime.terminal import printable

CUSTOMER_OF_WHICH = (
    "--customer requires --organization ID or --all-organizations: "
    "another organization can have a different customer with the same ID."
)


class Command(PaymentsCommand):
    """`anonymize_payments (--before DATE | --customer ID) [--organization ID] [--mode live|test] [--dry-run]`.

    With `--customer`, it requires `--organization` or `--all-organizations`.
    """

    help = """
        Empty description, URLs, metadata, details and customer ID of payments: those
        created before a day, or those of a customer.

        IDs, times, amounts and statuses stay, so the payments keep their position in
        the list. After an interruption, run the command again for the rest. Importing
        an old file again restores its personal data.

        If the payments of one organization and mode cannot be written, the command
        reports them and continues with the others.

        Exit status: 0 if all requested payments are anonymized, otherwise 1.
    """
    examples = (
        "manage.py anonymize_payments --before 2020-01-01 --dry-run",
        "manage.py anonymize_payments --before 2020-01-01 --organization 7 --mode live",
        "manage.py anonymize_payments --customer ct_7 --organization 7",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        choice = parser.add_mutually_exclusive_group(required=True)
        choice.add_argument(
            "--before",
            type=parse_past_day,
            metavar="DATE",
            help="payments created before this day (UTC), such as 2020-01-01",
        )
        choice.add_argument(
            "--customer", type=parse_customer_id, metavar="ID", help="payments of any age of this customer: ct_..."
        )
        add_access_options(parser)
        parser.add_argument(
            "--all-organizations", action="store_true", help="with --customer: the customers of all organizations"
        )
        parser.add_argument("--dry-run", action="store_true", help="only count the payments; change nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["customer"] and not (options["organization"] or options["all_organizations"]):
            raise CommandError(CUSTOMER_OF_WHICH)
        changed = 0
        is_complete = True
        with tqdm(unit=" payments", disable=None) as progress:
            for access in requested_accesses(options["organization"], options["mode"]):
                try:
                    changed += anonymize_payments(
                        access,
                        before=options["before"],
                        customer_id=options["customer"],
                        dry_run=options["dry_run"],
                        on_progress=progress.update,
                    )
                except OperationalError as error:
                    if connection.connection is None or not connection.is_usable():
                        raise
                    # Other payments may be on another server of a Citus cluster, or not be written by an import.
                    is_complete = False
                    subject = f"Organization {access.organization_id} ({access.mode})"
                    tqdm.write(f"{subject}: the database failed: {printable(first_line(error))}", file=sys.stderr)
        if not is_complete:
            raise CommandError("Not all payments were anonymized. Run the command again for the rest.")
        if options["dry_run"]:
            self.write_success(
                f"{changed} payments would be anonymized.", "Next: run the same command without --dry-run"
            )
        else:
            self.write_success(f"{changed} payments anonymized.")


def requested_accesses(organization_id: int | None, mode: str | None) -> list[Access]:
    all_ids = Organization.objects.order_by("id").values_list("id", flat=True)
    ids = all_ids if organization_id is None else [find_organization(organization_id).id]
    return [Access(id_, mode_) for id_ in ids for mode_ in (Mode.values if mode is None else [mode])]


def parse_customer_id(text: str) -> str:
    if not re.fullmatch(CUSTOMER_ID, text):
        raise ArgumentTypeError(f"{text!r} is not a customer ID such as ct_7")
    return text
