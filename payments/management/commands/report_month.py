"""Report the figures of a month."""

from argparse import ArgumentParser, ArgumentTypeError
from contextlib import suppress
from datetime import date
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from tqdm import tqdm

from payments.export.reports import FORMATS
from payments.management.command import PaymentsCommand
from payments.management.options import find_organization
from payments.models import DayKind, Mode
from payments.models.days import day_of
from payments.totals.daily import Calendar, daily_totals, sum_missing_days
from payments.totals.report import TotalsNotReady, days_of_month, month_of, parse_month, read_report


class Command(PaymentsCommand):
    """`report_month --organization ID --month YYYY-MM [--mode live|test] [--by paid|created] [--format FORMAT]`."""

    help = """
        Write the figures of a month to stdout: paid, refunded, fees and net by
        currency, by method and by day, and the payments that are still open.

        The days are those of the organization's time zone. Payments count on the day
        on which they were paid or, with --by created, created. The figures of days
        are stored, so the next report is quick. If stderr is a terminal, a progress
        bar is shown.
    """
    examples = (
        "manage.py report_month --organization 7 --month 2026-10",
        "manage.py report_month --organization 7 --month 2026-10 --format csv >october.csv",
        "manage.py report_month --organization 7 --month 2026-10 --by created --mode test",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--organization", type=int, metavar="ID", required=True, help="the organization")
        parser.add_argument("--month", type=month_argument, metavar="YYYY-MM", required=True, help="the month")
        parser.add_argument("--mode", choices=Mode.values, default=Mode.LIVE.value, help="default: live")
        parser.add_argument("--by", choices=DayKind.values, default=DayKind.PAID.value, help="default: paid")
        parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")

    def handle(self, *_args: Any, **options: Any) -> None:
        organization, month = find_organization(options["organization"]), options["month"]
        calendar = Calendar.of(organization, options["mode"], DayKind(options["by"]))
        days = days_of_month(month, today=day_of(timezone.now(), organization.zone))
        if not days:
            raise CommandError(f"{month_of(month)} is in the future. Choose a month that has begun.")
        report = None
        while report is None:
            for day in tqdm(daily_totals(calendar, days=days).missing, unit=" days", disable=None):
                sum_missing_days(calendar, days=[day], limit=None)
            with suppress(TotalsNotReady):  # an import has changed the month meanwhile
                report = read_report(organization, calendar, days=days)
        self.stdout.write(FORMATS[options["format"]].write(report), ending="")


def month_argument(text: str) -> date:
    month = parse_month(text)
    if month is None:
        raise ArgumentTypeError(f"{text!r} is not a month such as 2026-10")
    return month
