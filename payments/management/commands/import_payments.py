"""Import payments from files."""

import os
import signal
import sys
import threading
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from types import FrameType
from typing import Any, cast

from django.core.management.base import CommandError
from django.db import Error, InterfaceError, OperationalError
from django.utils import timezone
from tqdm import tqdm

from payments.ingest import ImportResult, Source, import_payments
from payments.ingest.errors import InvalidRecord
from payments.ingest.formats.sources import Location
from payments.ingest.imports import REFUSED_MAX, OutcomeUnknown
from payments.ingest.translations import WORDS, parse_translations
from payments.ingest.validation import Options
from payments.management.command import INTERRUPTED, PaymentsCommand
from payments.management.failures import describe_failure, explain
from payments.models import ApiKey, Mode, Organization, Payment
from payments.runtime.database_errors import is_conflict
from payments.runtime.terminal import printable

FLAGS = {
    "--dry-run": "read and check everything, count the changes, and write nothing",
    "--keep-going": "write the valid records even if others are invalid",
    "--create-organizations": "create missing organizations instead of refusing their payments",
    "--ignore-unknown-fields": "skip and count fields that a payment does not have, instead of refusing the records",
    "--trust-texts": "accept numbers that look like card numbers in descriptions, metadata and URLs",
}


class Command(PaymentsCommand):
    """`import_payments FILE... [--dry-run] [--keep-going] [--create-organizations] [--map MEMBER:FROM=TO]`."""

    help = """
        Load payments from JSON Lines, JSON arrays, saved pages of the API or CSV,
        gzipped or not. The format is detected. The records have the form of the API's
        responses. CSV names their fields in its first line: id,mode,amount.value,...

        New payments are inserted and existing ones updated. Importing a file again
        changes nothing. An invalid record is reported on stderr with its file, line and
        field. Then nothing is written, unless --keep-going is given. With --dry-run,
        nothing is written at all; messages and exit status are those of an import.

        Exit status: 0 if every record is written, 1 if a record is refused or the
        import fails, 2 for an invalid option, 130 after Ctrl-C.
    """
    examples = (
        "manage.py import_payments payments.jsonl more.json.gz",
        "manage.py import_payments --dry-run payments.csv",
        "manage.py import_payments --create-organizations --map status:paid=succeeded payments.jsonl",
        "manage.py import_payments --keep-going - <payments.csv",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files",
            nargs="+",
            metavar="FILE",
            help="a file, or - for stdin; the payments of several files are written together or not at all",
        )
        for name, text in FLAGS.items():
            parser.add_argument(name, action="store_true", help=text)
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="MEMBER:FROM=TO",
            help=f"read FROM as TO in {', '.join(WORDS)}, such as status:paid=succeeded; repeatable",
        )
        parser.add_argument(
            "--not-a-card",
            action="append",
            default=[],
            type=parse_member,
            metavar="details.MEMBER",
            help="accept and count numbers that look like card numbers in this member of the details; repeatable",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            options["map"] = parse_translations(options["map"])
        except ValueError as error:
            raise CommandError(f"--map {error}", returncode=2) from None  # as argparse
        result = self.import_files(options)
        created = "would be created" if options["dry_run"] else "created"
        is_undone = result.refused and not options["keep_going"]
        changes = "" if is_undone else describe(result, created)
        summary = f"{result.read} records read: {changes}{result.refused} refused."
        if result.ignored:
            summary += f" {result.ignored} unknown fields were skipped."
        if result.not_cards:
            summary += f" {result.not_cards} values look like card numbers, and --not-a-card accepted them."
        if is_undone and result.refused >= REFUSED_MAX:
            summary += f" The import stopped after {REFUSED_MAX} errors; there may be more."
        if result.refused:
            raise CommandError(f"{summary} Nothing was changed." if is_undone else summary)
        import_now = "Next: run the same command without --dry-run"
        self.write_success(summary, *([import_now] if options["dry_run"] else suggest_key(result)))

    def import_files(self, options: dict[str, Any]) -> ImportResult:
        """Import the files. If the database ends the import because of other transactions, repeat it once.

        The import is not repeated if a file cannot be read again. Neither is it after a record has been reported,
        because its line would appear twice.
        """
        self.has_reported = False
        try:
            return self.import_once(options, is_repeated=False)
        except CommandError as error:
            are_files = all(name != "-" and Path(name).is_file() for name in options["files"])
            if self.has_reported or not (are_files and is_conflict(error.__cause__)):
                raise
        self.write_success("Another transaction changed the same payments at the same time. The import starts again.")
        return self.import_once(options, is_repeated=True)

    def report(self, location: Location, invalid: InvalidRecord) -> None:
        self.has_reported = True
        for error in invalid.reported:
            tqdm.write(location.describe(error), file=sys.stderr)

    def import_once(self, options: dict[str, Any], *, is_repeated: bool) -> ImportResult:
        with open_sources(options["files"]) as sources, recorded_interrupt() as interrupt:
            try:
                return import_payments(
                    sources,
                    on_refused=self.report,
                    keep_going=options["keep_going"],
                    create_organizations=options["create_organizations"],
                    waits_for_writers=is_repeated,
                    dry_run=options["dry_run"],
                    options=Options(
                        options["trust_texts"], options["ignore_unknown_fields"], options["map"], options["not_a_card"]
                    ),
                )
            except (KeyboardInterrupt, Error) as error:
                if isinstance(error, KeyboardInterrupt) or interrupt.is_set():
                    raise CommandError("Interrupted. Nothing was changed.", returncode=INTERRUPTED) from None
                if isinstance(error, OperationalError | InterfaceError):
                    failure = f"The database failed, and nothing was changed: {describe_failure(error)}"
                    raise CommandError(failure) from error
                if explain(error) is not None:
                    raise
                reason = type(error.__cause__).__name__  # its text can have the values of a record
                raise CommandError(
                    f"The database refused a payment, and nothing was changed: {reason}. Report this bug."
                ) from error
            except OutcomeUnknown as error:
                raise CommandError(
                    "Interrupted during the commit: either all payments were written or none. Run the import again.",
                    returncode=INTERRUPTED if isinstance(error.__cause__, KeyboardInterrupt) else 1,
                ) from error


def parse_member(text: str) -> str:
    """Return the name of a member of the details, as errors print it."""
    if text.startswith("details.") and text not in {"details.", "details.cardNumber"}:
        return text
    raise ArgumentTypeError("must be details.MEMBER, and not details.cardNumber")


@contextmanager
def recorded_interrupt() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets. It still raises KeyboardInterrupt.

    SQLite calls Python functions, such as Django's REGEXP. If KeyboardInterrupt is raised there, sqlite3 replaces it
    with an OperationalError that has no error code of its own.
    """
    interrupt = threading.Event()
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield interrupt  # a background job ignores Ctrl-C, and only the main thread may handle signals
        return

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt.set()
        handler(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, handler)


def describe(result: ImportResult, created: str) -> str:
    columns = ", ".join(f"{name} {number}" for name, number in result.columns.items() if number)
    changed = f"{result.changed} changed" + (f" ({columns})" if columns else "")
    return f"{result.created} payments {created}, {changed}, {result.unchanged} unchanged, "


def suggest_key(result: ImportResult) -> Iterator[str]:
    """Yield the command that creates an API key, if an organization of the imported payments has none."""
    with suppress(Error, KeyboardInterrupt):  # the payments are written, so the command must not fail now
        active = ApiKey.objects.active(now=timezone.now())
        without_key = Organization.objects.filter(id__in=result.organization_ids).exclude(keys__in=active)
        if result.written and (organization := without_key.order_by("id").first()):
            has_live = Payment.objects.filter(organization=organization, mode=Mode.LIVE).exists()
            mode = Mode.LIVE if has_live else Mode.TEST
            yield f"Next: manage.py create_api_key --organization {organization.id} --mode {mode} --name NAME"


@contextmanager
def open_sources(names: list[str]) -> Iterator[list[Source]]:
    """Open all files before the first one is read, and show progress bars on a terminal.

    :raises CommandError: if a file cannot be opened
    """
    with ExitStack() as stack:
        streams: list[tuple[str, BufferedReader, int | None]] = []
        for name in names:
            if name == "-":
                if sys.stdin is None:
                    raise CommandError("stdin: is closed")
                streams.append(("stdin", cast("BufferedReader", sys.stdin.buffer), None))
                continue
            try:
                stream = stack.enter_context(Path(name).open("rb"))
            except OSError as error:
                raise CommandError(f"{name}: {error.strerror}") from None
            streams.append((printable(name), stream, os.fstat(stream.fileno()).st_size))
        yield [Source(name, with_progress_bar(stack, name, stream, size)) for name, stream, size in streams]


def with_progress_bar(stack: ExitStack, name: str, stream: BufferedReader, size: int | None) -> BufferedReader:
    bar = tqdm.wrapattr(stream, "read", total=size, desc=name, disable=None)
    return cast("BufferedReader", stack.enter_context(bar))
