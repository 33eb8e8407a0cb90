"""Export payments to stdout."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from payments.export import export_payments
from payments.management.arguments import find_organization
from payments.management.filters import add_filters, filtered
from payments.models import Mode, Payment


class Command(BaseCommand):
    """`export_payments [--organization ID] [--mode live|test] [--status WORDS] [--created-at-gte TIME] ...`."""

    help = "Write payments to stdout as JSON Lines, which import_payments takes back: all of them, or those asked for."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--organization", type=int, metavar="ID", help="only the payments of this one")
        parser.add_argument("--mode", choices=Mode.values, help="only the payments of this mode")
        add_filters(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        payments = Payment.objects.all()
        if options["organization"] is not None:
            payments = payments.filter(organization=find_organization(options["organization"]))
        if options["mode"] is not None:
            payments = payments.filter(mode=options["mode"])
        payments = filtered(payments, options)
        output = sys.stdout.buffer
        # Beside lines on the same terminal, a bar would be noise.
        lines = tqdm(export_payments(payments), unit=" payments", disable=True if output.isatty() else None)
        try:
            output.writelines(lines)
            output.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # where the rest of the buffer goes
            if isinstance(error, BrokenPipeError):  # whoever read has seen enough, as in `export_payments | head`
                sys.exit(1)
            raise CommandError(f"stdout: {error.strerror}") from error
