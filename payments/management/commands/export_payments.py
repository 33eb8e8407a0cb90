"""Export payments to stdout."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from io import UnsupportedOperation
from pathlib import Path
from stat import S_ISREG
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from payments.export.bookkeeping import Book
from payments.export.files import Format, read_changes, read_rows
from payments.listing.feed import UnknownPosition
from payments.listing.tokens import FeedPosition, InvalidToken, format_token, parse_token
from payments.management.command import PaymentsCommand
from payments.management.failures import explain
from payments.management.options import (
    add_access_options,
    add_filter_options,
    add_format_options,
    apply_filter_options,
    find_organization,
    has_filter_options,
    requested_format,
)
from payments.models import Access, Payment
from payments.rows import RowValues


class Command(PaymentsCommand):
    """`export_payments [--organization ID] [--mode live|test] [--format F] [--changes --token-file FILE | FILTERS]`."""

    help = """
        Write payments to stdout, one JSON object per line, or as CSV. Without options,
        the command exports all payments. Importing an export and exporting again gives
        identical bytes.

        The order is by organization, mode and time of creation, newest first. If stderr
        is a terminal and stdout is not, a progress bar is shown.

        With --format csv, the file can be imported: its columns have the names of the
        API, and an apostrophe precedes each text that a spreadsheet would change. With
        an option for bookkeepers, the file cannot be imported: it has the columns and
        headings of the admin and local times, and protects texts from formulas only.

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
        "manage.py export_payments --organization 7 --format csv --decimal comma --delimiter semicolon --totals >7.csv",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_access_options(parser)
        add_format_options(parser)
        changes = parser.add_argument_group("changes", "these need --organization and --mode")
        changes.add_argument("--changes", action="store_true", help="only payments that changed since the last run")
        changes.add_argument(
            "--token-file", type=Path, metavar="FILE", help="the file with the position of the last run"
        )
        add_filter_options(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        organization_id, mode = options["organization"], options["mode"]
        organization = None if organization_id is None else find_organization(organization_id)
        file_format = requested_format(options, organization=organization)
        access = None if organization_id is None or mode is None else Access(organization_id, mode)
        if options["changes"] or options["token_file"]:
            export_changes(access, options, file_format)
        else:
            conditions = {name: options[name] for name in ("organization", "mode") if options[name] is not None}
            payments = apply_filter_options(Payment.objects.filter(**conditions), options, access=access)
            write_rows(read_rows(payments), file_format)


def export_changes(access: Access | None, options: dict[str, Any], file_format: Format | Book) -> None:
    """Write the payments that have changed since the position in the file, then replace the file."""
    file = options["token_file"]
    if not options["changes"]:
        raise CommandError("--token-file needs --changes.")
    if file is None or access is None:
        raise CommandError("--changes needs --token-file, --organization and --mode.")
    if has_filter_options(options):
        raise CommandError("--changes cannot be combined with filters.")
    position = read_position(file, access)

    def rows() -> Iterator[RowValues]:
        nonlocal position
        for page in read_changes(position):
            yield from page.rows
            position = page.later

    try:
        write_rows(rows(), file_format)
    except UnknownPosition:
        raise CommandError(
            f"{file}: the service does not know all changes since this position. "
            "Next: delete this file and your copy of the payments, and run the command again."
        ) from None
    store_stdout()
    write_position(file, position)


def read_position(file: Path, access: Access) -> FeedPosition:
    """Return the position in the file; the beginning of the feed if there is no file."""
    try:
        text = file.read_text(errors="replace").strip()
    except FileNotFoundError:
        if not file.parent.is_dir():
            raise CommandError(f"{file.parent}: this directory does not exist.") from None
        return FeedPosition(*access)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    try:
        position = parse_token(text)
    except InvalidToken:
        raise CommandError(f"{file}: this is not a token of the change feed.") from None
    if position.access != access:
        organization_id, mode = position.access
        raise CommandError(f"{file}: this token is of organization {organization_id} ({mode}).")
    return position


def write_position(file: Path, position: FeedPosition) -> None:
    """Replace the file by one with the token, at once: after a crash, the file has the old or the new token."""
    new = file.with_name(f"{file.name}.new")
    try:
        with new.open("w") as stream:
            stream.write(f"{format_token(position)}\n")
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(file)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error


def store_stdout() -> None:
    """Wait until the lines are stored, if stdout is a file."""
    try:
        output = sys.stdout.fileno()
        if S_ISREG(os.fstat(output).st_mode):
            os.fsync(output)
    except UnsupportedOperation:  # a program that calls this command has replaced stdout
        pass
    except OSError as error:
        raise CommandError(explain(error) or f"stdout: {error.strerror}") from error


def write_rows(rows: Iterable[RowValues], file_format: Format | Book) -> None:
    """Write payments to stdout, and a progress bar to stderr."""
    output = sys.stdout.buffer
    # A progress bar would mix with the payments on the same terminal.
    with_progress = tqdm(rows, unit=" payments", disable=True if output.isatty() else None)
    try:
        output.write(file_format.start)
        output.writelines(file_format.write([row]) for row in with_progress)
        output.write(file_format.end())
        output.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # Python writes the rest of the buffer at exit
        if isinstance(error, BrokenPipeError):  # the reader has ended, as in `export_payments | head`
            sys.exit(1)
        raise CommandError(explain(error) or f"stdout: {error.strerror}") from error
