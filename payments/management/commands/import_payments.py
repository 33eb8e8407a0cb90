"""Import payments from files."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from django.core.management.base import CommandError
from django.db import Error, InterfaceError, OperationalError
from django.utils import timezone
from tqdm import tqdm

from payments.ingest import ImportResult, Source, import_payments
from payments.ingest.imports import REFUSED_MAX, OutcomeUnknown
from payments.ingest.reading import Location
from payments.ingest.validation import InvalidRecord
from payments.management.command import INTERRUPTED, ExplainedCommand
from payments.models import ApiKey, Mode, Organization, Payment

# What is left of Ctrl-C where SQLite was just asking Django about a regular expression.
INTERRUPTED_WITHIN_SQLITE = "user-defined function raised exception"


class Command(ExplainedCommand):
    """`import_payments FILE... [--keep-going] [--create-organizations]`."""

    help = """
        Load payments from JSON Lines, JSON arrays or saved pages of the API, gzipped
        or not: what a file is, its content tells. The records are in the form that the
        API gives.

        A payment that is there already is updated; importing a file again changes
        nothing. Where a record is bad it is named on stderr, by file, line and field,
        and nothing at all is written, unless --keep-going is given.

        Exit status: 0 where every record is written, 1 where one was refused or
        something failed, 130 after Ctrl-C.
    """
    examples = (
        "manage.py import_payments payments.jsonl more.json.gz",
        "manage.py import_payments --create-organizations payments.jsonl",
        "manage.py import_payments --keep-going - <payments.jsonl",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files", nargs="+", metavar="FILE", help="a file, or - for stdin; of several, all are written or none"
        )
        parser.add_argument(
            "--keep-going", action="store_true", help="write the good records all the same, and list the bad"
        )
        parser.add_argument(
            "--create-organizations",
            action="store_true",
            help="make the organizations that do not exist, rather than refuse their payments",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        with opened(options["files"]) as sources:
            imported = self.load(sources, options)
        summary = f"{imported.read} records read: {imported.changed} payments written, {imported.refused} refused."
        if imported.refused >= REFUSED_MAX and not options["keep_going"]:
            summary += " There may be more of them."
        if imported.refused:
            raise CommandError(summary if options["keep_going"] else f"{summary} Nothing was changed.")
        self.tell(summary, *next_step(imported))

    def load(self, sources: list[Source], options: dict[str, Any]) -> ImportResult:
        try:
            return import_payments(
                sources,
                on_refused=self.report,
                keep_going=options["keep_going"],
                create_organizations=options["create_organizations"],
            )
        except KeyboardInterrupt:
            raise interrupted() from None
        except (OperationalError, InterfaceError) as error:
            if str(error) == INTERRUPTED_WITHIN_SQLITE:
                raise interrupted() from None
            reason, _, _ = str(error).partition("\n")  # further lines may repeat a row
            raise CommandError(f"The database failed, and nothing was changed: {reason}") from error
        except OutcomeUnknown as error:
            raise CommandError(
                "Cut off at the very end: either everything was written or nothing. Import it again to make sure.",
                returncode=INTERRUPTED if isinstance(error.__cause__, KeyboardInterrupt) else 1,
            ) from error

    def report(self, location: Location, error: InvalidRecord) -> None:
        tqdm.write(f"{location}: {error}", file=sys.stderr)


def next_step(imported: ImportResult) -> Iterator[str]:
    """Say how those whose payments were written get a key, where they have none."""
    with suppress(Error, KeyboardInterrupt):  # the payments are written, whatever comes of this
        if imported.changed and (organization := keyless(imported.organization_ids)):
            is_live = Payment.objects.filter(organization=organization, mode=Mode.LIVE).exists()
            mode = Mode.LIVE if is_live else Mode.TEST
            yield f"Next: manage.py create_api_key --organization {organization.id} --mode {mode} --name NAME"


def keyless(organization_ids: set[int]) -> Organization | None:
    """Return the first of these organizations that has no usable key."""
    usable = ApiKey.objects.usable(now=timezone.now())
    return Organization.objects.filter(id__in=organization_ids).exclude(keys__in=usable).order_by("id").first()


def interrupted() -> CommandError:
    return CommandError("Interrupted; nothing was changed.", returncode=INTERRUPTED)


@contextmanager
def opened(names: list[str]) -> Iterator[list[Source]]:
    """Open the files: a missing one stops the import before it begins; show on a terminal how far each is read."""
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
            streams.append((name, stream, os.fstat(stream.fileno()).st_size))
        yield [Source(name, watched(stack, name, stream, size)) for name, stream, size in streams]


def watched(stack: ExitStack, name: str, stream: BufferedReader, size: int | None) -> BufferedReader:
    bar = tqdm.wrapattr(stream, "read", total=size, desc=name, disable=None)
    return cast("BufferedReader", stack.enter_context(bar))
