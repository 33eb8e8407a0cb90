"""Export payments to stdout."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from payments.export import export_payments
from payments.management.arguments import find_organization
from payments.management.command import ExplainedCommand
from payments.management.filter_options import add_filters, filtered
from payments.models import Mode, Payment


class Command(ExplainedCommand):
    """`export_payments [--organization ID] [--mode live|test] [--status WORDS] [--created-at-gte TIME] ...`."""

    help = """
        Write payments to stdout, a JSON object a line: all of them, or those that are
        asked for. import_payments takes them back, byte for byte.

        They come organization by organization, mode by mode, newest first. How far it
        is shows on a terminal, where the payments go elsewhere.
    """
    examples = (
        "manage.py export_payments --organization 7 --mode live | gzip >payments.jsonl.gz",
        "manage.py export_payments --status open,pending --created-at-gte 2026-01-01",
        "manage.py export_payments --currency EUR --amount-gte 100.00 --metadata order=84820",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--organization", type=int, metavar="ID", help="only the payments of this one (default: of all)"
        )
        parser.add_argument("--mode", choices=Mode.values, help="only the payments of this mode (default: of both)")
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
