"""Create demo payments."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime, time
from itertools import islice
from typing import Any

from django.db import transaction
from django.utils import timezone
from tqdm import tqdm

from payments.conf import conf
from payments.demo import SHOPS, SPAN, demo_records
from payments.ingest.change_log import ChangeLog
from payments.ingest.staging import prepare_transaction
from payments.ingest.stored_rows import days, stored_row
from payments.ingest.writing import ImportResult, write_rows
from payments.management.command import PaymentsCommand
from payments.management.options import parse_day
from payments.models import Organization
from payments.models.identifiers import EPOCH


class Command(PaymentsCommand):
    """`create_demo_payments [--count N] [--seed N] [--until DATE]`."""

    help = """
        Create realistic payments of three fictitious shops, the organizations 1001 to
        1003, in the year before a day.

        The same count, seed and day give the same payments, so running the command
        again changes nothing. A higher count adds payments. Payments cannot be deleted:
        use a separate database.
    """
    examples = (
        "manage.py create_demo_payments",
        "manage.py create_demo_payments --count 100000 --seed 7 --until 2026-01-31",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--count",
            type=parse_positive_number,
            default=1000,
            metavar="N",
            help="the number of payments (default: %(default)s)",
        )
        parser.add_argument(
            "--seed",
            type=int,
            default=1,
            metavar="N",
            help="another number gives other payments (default: %(default)s)",
        )
        parser.add_argument(
            "--until",
            type=parse_until,
            metavar="DATE",
            help="the payments are created before this day, such as 2026-01-31, in UTC (default: today)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        until = options["until"] or datetime.combine(timezone.now().date(), time(), UTC)
        records = demo_records(options["count"], seed=options["seed"], until=until)
        result = ImportResult()
        log = ChangeLog()
        with transaction.atomic(), tqdm(total=options["count"], unit=" payments", disable=None) as progress:
            for shop in SHOPS:
                Organization.objects.get_or_create(id=shop.id, defaults={"name": shop.name})
            target = prepare_transaction()
            while batch := list(islice(records, conf.IMPORT_BATCH_RECORDS)):
                rows = [stored_row(record) for record in batch]
                write_rows(rows, target=target, log=log, result=result)
                log.add_days(days(rows))
                progress.update(len(batch))
            log.record()
        self.write_success(
            f"{options['count']} demo payments: {result.written} written, the others unchanged.",
            f"Next: manage.py create_api_key --organization {SHOPS[0].id} --mode live --name NAME",
        )


def parse_positive_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def parse_until(text: str) -> datetime:
    until = parse_day(text)
    if until < EPOCH + SPAN:
        raise ArgumentTypeError(f"{text!r} is before 1971-01-01: payment IDs count time from 1970")
    return until
