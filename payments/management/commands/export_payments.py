"""Export payments to stdout."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from payments.changes import UnknownPosition
from payments.export import export_line, export_payments, read_changes
from payments.management.arguments import add_mode_option, add_organization_option, find_organization
from payments.management.command import PaymentsCommand
from payments.management.filter_options import add_filter_options, apply_filter_options, has_filter_options
from payments.management.token_file import read_position, write_position
from payments.models import Access, Payment, PaymentQuerySet
from payments.tokens import Position


class Command(PaymentsCommand):
    """`export_payments [--organization ID] [--mode live|test] [--changes --token-file FILE | FILTERS]`."""

    help = """
        Write payments to stdout, one JSON object per line. Without options, the command
        exports all payments. Importing an export and exporting again gives identical
        bytes.

        The order is by organization, mode and time of creation, newest first. If stderr
        is a terminal and stdout is not, a progress bar is shown.

        With --changes, the command writes the payments of an organization and mode
        that have changed since the last run, in the order of their changes. FILE
        contains the position. When all payments are written to stdout, the command
        replaces FILE. Without FILE, it writes all payments.
    """
    examples = (
        "manage.py export_payments --organization 7 --mode live | gzip >payments.jsonl.gz",
        "manage.py export_payments --status open,pending --created-at-gte 2026-01-01",
        "manage.py export_payments --currency EUR --amount-gte 100.00 --metadata order=84820",
        "manage.py export_payments --organization 7 --mode live --changes --token-file 7.token",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_organization_option(parser, subject="payments")
        add_mode_option(parser, subject="payments")
        changes = parser.add_argument_group("changes", "these need --organization and --mode")
        changes.add_argument("--changes", action="store_true", help="only payments that changed since the last run")
        changes.add_argument(
            "--token-file", type=Path, metavar="FILE", help="the file with the position of the last run"
        )
        add_filter_options(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        organization_id, mode = options["organization"], options["mode"]
        if organization_id is not None:
            find_organization(organization_id)
        has_access = organization_id is not None and mode is not None
        access = Access(organization_id, mode) if has_access else None
        if options["changes"] or options["token_file"]:
            export_changes(access, options)
        else:
            write_lines(export_payments(select(options, access)))


def select(options: dict[str, Any], access: Access | None) -> PaymentQuerySet:
    """Return the payments that the options select."""
    payments = Payment.objects.all()
    if options["organization"] is not None:
        payments = payments.filter(organization_id=options["organization"])
    if options["mode"] is not None:
        payments = payments.filter(mode=options["mode"])
    return apply_filter_options(payments, options, access=access)


def export_changes(access: Access | None, options: dict[str, Any]) -> None:
    """Write the payments that have changed since the position in the file, then replace the file.

    :raises CommandError: an option is missing or not possible, or the database does not know the position
    """
    file = options["token_file"]
    if not options["changes"] or file is None or access is None:
        raise CommandError("--changes and --token-file need each other, and --organization and --mode.")
    if has_filter_options(options):
        raise CommandError("--changes cannot be combined with filters.")
    changes = ChangesSince(read_position(file, access))
    try:
        write_lines(changes.lines())
    except UnknownPosition:
        raise CommandError(
            f"{file}: the database no longer has all changes that you have exported. "
            "Next: delete this file and your copy of the payments, and run the command again."
        ) from None
    write_position(file, changes.position)


class ChangesSince:
    """The payments that have changed since a position. `lines` moves it."""

    def __init__(self, position: Position) -> None:
        self.position = position

    def lines(self) -> Iterator[bytes]:
        for page in read_changes(self.position):
            yield from map(export_line, page.rows)
            self.position = page.later


def write_lines(lines: Iterable[bytes]) -> None:
    """Write lines to stdout, and a progress bar to stderr.

    :raises CommandError: stdout cannot be written
    """
    output = sys.stdout.buffer
    # A progress bar would mix with the payments on the same terminal.
    with_progress = tqdm(lines, unit=" payments", disable=True if output.isatty() else None)
    try:
        output.writelines(with_progress)
        output.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # Python writes the rest of the buffer at exit
        if isinstance(error, BrokenPipeError):  # the reader has ended, as in `export_payments | head`
            sys.exit(1)
        raise CommandError(f"stdout: {error.strerror}") from error
