"""Delete the records of payment reads before a day."""

from argparse import ArgumentParser
from typing import Any

from tqdm import tqdm

from payments.management.command import PaymentsCommand
from payments.management.options import parse_past_day
from payments.models import PaymentRead


class Command(PaymentsCommand):
    """`delete_old_payment_reads --before DATE`."""

    help = """
        Delete the records of payments that staff read before a day.

        The command works in short transactions. After an interruption, run it again.
    """
    examples = ("manage.py delete_old_payment_reads --before 2026-01-01",)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--before",
            type=parse_past_day,
            required=True,
            metavar="DATE",
            help="reads before this day (UTC), such as 2026-01-01",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        with tqdm(unit=" reads", disable=None) as progress:
            deleted = PaymentRead.objects.delete_before(options["before"], on_progress=progress.update)
        self.write_success(f"{deleted} reads deleted.")
