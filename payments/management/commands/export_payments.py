"""Export payments to stdout."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from payments.export import export_payments
from payments.management.arguments import add_mode_option, add_organization_option, find_organization
from payments.management.command import PaymentsCommand
from payments.management.filter_options import add_filter_options, apply_filter_options
from payments.models import Access, Payment


class Command(PaymentsCommand):
    """`export_payments [--organization ID] [--mode live|test] [--status WORDS] [--created-at-gte TIME] ...`."""

    help = """
        Write payments to stdout, one JSON object per line. Without options, the command
        exports all payments. Importing an export and exporting again gives identical
        bytes.

        The order is by organization, mode and time of creation, newest first. If stderr
        is a terminal and stdout is not, a progress bar is shown.
    """
    examples = (
        "manage.py export_payments --organization 7 --mode live | gzip >payments.jsonl.gz",
        "manage.py export_payments --status open,pending --created-at-gte 2026-01-01",
        "manage.py export_payments --currency EUR --amount-gte 100.00 --metadata order=84820",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_organization_option(parser, subject="payments")
        add_mode_option(parser, subject="payments")
        add_filter_options(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        payments = Payment.objects.all()
        organization_id, mode = options["organization"], options["mode"]
        if organization_id is not None:
            payments = payments.filter(organization=find_organization(organization_id))
        if mode is not None:
            payments = payments.filter(mode=mode)
        has_access = organization_id is not None and mode is not None
        access = Access(organization_id, mode) if has_access else None
        payments = apply_filter_options(payments, options, access=access)
        output = sys.stdout.buffer
        # A progress bar would mix with the payments on the same terminal.
        lines = tqdm(export_payments(payments), unit=" payments", disable=True if output.isatty() else None)
        try:
            output.writelines(lines)
            output.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # Python writes the rest of the buffer at exit
            if isinstance(error, BrokenPipeError):  # the reader has ended, as in `export_payments | head`
                sys.exit(1)
            raise CommandError(f"stdout: {error.strerror}") from error
