"""import_payments refuses invalid files: it names the line and the reason, and writes nothing."""

import gzip
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.management import CommandError, call_command

from payments.ingest.formats.sources import RAW_BYTES_MAX
from payments.ingest.json_values import NESTING_MAX
from payments.models import Organization, Payment
from tests.support.commands import run_command
from tests.support.factories import PaymentFactory
from tests.support.lines import CSV_CELLS, compact, export_payments, line, record
from tests.support.migrated import fresh_database
from tests.support.processes import ROOT
from tests.support.service import Service

GOOD = line(id="pt_2")
BOM = b"\xef\xbb\xbf"
MB = 2**20

# In KB, more than an import of one payment: the longest value, and a copy of it while it grows.
VALUE_BYTES_MAX = 2**24  # IMPORT_VALUE_BYTES_MAX of the service: of a line
MEMORY_MAX = 3 * VALUE_BYTES_MAX // 1024

# Python's reader of CSV needs four bytes for each character, and a copy of them while a cell grows.
CSV_MEMORY_MAX = 4 * MEMORY_MAX

READ_WHOLE = """
import gzip, pathlib, sys
content = pathlib.Path(sys.argv[1]).read_bytes()
content = gzip.decompress(content) if content.startswith(b"\\x1f\\x8b") else content
"""


def lines(*texts: bytes) -> bytes:
    return b"".join(text + b"\n" for text in texts)


def with_details(json: bytes) -> bytes:
    return line(details={"a": "@"}).replace(b'"@"', json)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def compressed(content: bytes) -> bytes:
    """Compress without a timestamp, so that each run has the same bytes."""
    return gzip.compress(content, mtime=0)


def zipped(content: bytes) -> bytes:
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(zipfile.ZipInfo("payments.jsonl"), content)  # dated 1980: a current time may contain a line feed
    return archive.getvalue()


CSV_ROW = ",".join(CSV_CELLS).encode() + b'\npt_2,live,10.00,EUR,"'

PAGE = compact({"count": 2, "_embedded": {"payments": [record(id="pt_2"), record(id="pt_3", mode="prod")]}})
NOT_JSON = r"is not JSON: JSON is malformed: .* \(byte \d+\)"
UNKNOWN_FORMAT = r"is neither JSON nor CSV\. The first line of CSV must name the fields, such as id,mode"
XML = r"is XML or HTML\. An import reads JSON and CSV"

# The content of a file, and a pattern of its error from the line number on.
INVALID: dict[str, tuple[bytes, str]] = {
    # Bytes
    "a byte order mark in the second line": (lines(GOOD, BOM + line()), f"2: {NOT_JSON}"),
    "UTF-16": (lines(GOOD).decode().encode("utf-16"), "1: is encoded in UTF-16. Save it as UTF-8"),
    "UTF-16 without a mark": (lines(GOOD).decode().encode("utf-16-le"), r"1: is not UTF-8 \(byte \d+\)"),
    "Latin-1": (lines(GOOD, line(description="Café").decode().encode("latin-1")), r"2: is not UTF-8 \(byte \d+\)"),
    "an overlong form": (
        lines(GOOD, line(description="@").replace(b"@", b"\xc0\xaf")),
        r"2: is not UTF-8 \(byte \d+\)",
    ),
    "a lone surrogate, as bytes": (
        lines(GOOD, line(description="@").replace(b"@", b"\xed\xa0\x80")),
        r"2: is not UTF-8 \(byte \d+\)",
    ),
    "a lone surrogate, escaped": (lines(GOOD, line(description="@").replace(b"@", rb"\ud800")), f"2: {NOT_JSON}"),
    "a lone surrogate in a name": (
        lines(GOOD, line(metadata={"@": ""}).replace(b"@", rb"\udc00")),
        f"2: {NOT_JSON}",
    ),
    "NUL, as a byte": (lines(GOOD, line(description="@").replace(b"@", b"\0")), f"2: {NOT_JSON}"),
    "NUL, escaped": (lines(GOOD, line(description="a\0b")), "2: description: must not contain the character NUL"),
    "a line of NUL": (lines(GOOD, b"\0" * 600, line()), f"2: {NOT_JSON}"),
    "only NUL": (b"\0" * 4096, f"1: {UNKNOWN_FORMAT}"),
    "a line feed within a string": (
        lines(GOOD, line(description="a@b").replace(b"@", b"\n")),
        "2: is not JSON: Input data was truncated",
    ),
    "a tab within a string": (lines(GOOD, line(description="a@b").replace(b"@", b"\t")), f"2: {NOT_JSON}"),
    "Latin-1 in CSV": (
        CSV_ROW + "Café".encode("latin-1") + b'",open,1,oneoff,2018-03-20T13:28:37Z\n',
        r"2: column 5: description: is not UTF-8\. Save the file as UTF-8",
    ),
    # JSON
    "NaN": (lines(GOOD, with_details(b"NaN")), f"2: {NOT_JSON}"),
    "Infinity": (lines(GOOD, with_details(b"-Infinity")), f"2: {NOT_JSON}"),
    "1e400": (lines(GOOD, with_details(b"1e400")), "2: details.a: is a number that is too large"),
    "5,000 digits": (lines(GOOD, with_details(b"9" * 5000)), "2: details.a: is a number that is too large"),
    "a duplicate name": (lines(GOOD, line().replace(b'"mode"', b'"id":"pt_3","mode"')), "2: id: occurs more than once"),
    "a duplicate name within details": (
        lines(GOOD, with_details(b'{"b":[{"c":1,"c":1}]}')),
        "2: details.a.b.c: occurs more than once",
    ),
    "nested 10,000 deep": (lines(GOOD, with_details(nested(10_000))), "2: is nested too deeply"),
    "nested one level too deep": (lines(GOOD, with_details(nested(NESTING_MAX - 1))), "2: is nested too deeply"),
    "nested 10,000 deep in an ignored field": (
        lines(GOOD, line(_links="@").replace(b'"@"', nested(10_000))),
        "2: is nested too deeply",
    ),
    "only brackets": (b"[" * 10_000, "1: expected a record here"),
    "single quotes": (lines(GOOD, b"{'id':'pt_1'}"), f"2: {NOT_JSON}"),
    "a trailing comma": (lines(GOOD, line()[:-1] + b",}"), f"2: {NOT_JSON}"),
    "a comment": (lines(b"# payments", GOOD), f"1: {UNKNOWN_FORMAT}"),
    "an incomplete object": (lines(GOOD, b'{"id":"pt_3"}'), "2: mode: is missing"),
    "a number instead of a record": (lines(GOOD, b"7"), "2: is not an object in JSON"),
    "null instead of a record": (lines(GOOD, b"null"), "2: is not an object in JSON"),
    # Ends
    "a truncated last line": (lines(GOOD) + line()[:-9], "2: is not JSON: Input data was truncated"),
    "a truncated array": (
        compact([record(id="pt_2"), record()])[:-9],
        "1: record 2: the file ends in the middle of this record",
    ),
    "a truncated page": (PAGE[:-9], "1: is not JSON: Input data was truncated"),
    "an invalid record in a page": (
        lines(PAGE),
        "1: record 2: mode: must be one of live, test; --map mode:VALUE=TO translates it",
    ),
    # Compressed
    "truncated gzip": (compressed(lines(GOOD))[:-9], "1: the gzip stream is damaged after this: .*"),
    "gzip with a wrong check sum": (
        compressed(lines(GOOD))[:-8] + b"\0" * 8,
        "1: the gzip stream is damaged after this: .*",
    ),
    "gzip with trailing bytes": (
        compressed(lines(GOOD)) + b"more",
        "1: the gzip stream is damaged after this: .*",
    ),
    "gzip within gzip": (compressed(compressed(lines(GOOD))), "1: is compressed more than once. Decompress it"),
    "a ZIP archive": (
        zipped(lines(GOOD)),
        "1: is a ZIP archive or a spreadsheet. Unpack it, or save the sheet as CSV",
    ),
    "a spreadsheet of an old Excel": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500,
        "1: is a spreadsheet. Save the sheet as CSV",
    ),
    # Too large
    "a line that is too long": (
        lines(GOOD) + b'{"id":"' + b"x" * VALUE_BYTES_MAX,
        f"2: longer than {VALUE_BYTES_MAX} bytes",
    ),
    # Other things
    "a CSV of something else": (b"date,amount\n2026-01-01,7\n", f"1: {UNKNOWN_FORMAT}"),
    "a web page": (b"<!DOCTYPE html>\n<html></html>\n", f"1: {XML}"),
    "XML": (b'<?xml version="1.0"?>\n<Document/>\n', f"1: {XML}"),
    "a problem": (
        compact({"type": "about:blank", "title": "Not Found", "status": 404}),
        "1: id: is missing",
    ),
    "records in an object": (compact({"payments": [record()]}), "1: id: is missing"),
    "an array within an array": (compact([[record()]]), "1: expected a record here"),
    "plain text": (b"nothing to see here", f"1: {UNKNOWN_FORMAT}"),
}


@pytest.mark.django_db
@pytest.mark.parametrize(("content", "message"), INVALID.values(), ids=INVALID.keys())
def test_invalid_file_is_refused_with_line_and_reason(
    organization: Organization, tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    PaymentFactory.create(id="pt_1", organization=organization)
    before = list(export_payments(Payment.objects.all()))
    file = tmp_path / "payments"
    file.write_bytes(content)

    with pytest.raises(CommandError) as error:
        call_command("import_payments", str(file))

    written = capfd.readouterr()
    first, *_ = written.err.splitlines()
    assert re.fullmatch(f"{re.escape(str(file))}:{message}", first)
    assert written.out == ""
    assert error.value.returncode == 1
    assert str(error.value).endswith("Nothing was changed.")
    assert list(export_payments(Payment.objects.all())) == before


@pytest.mark.django_db
@pytest.mark.parametrize("content", [b"", BOM, b"\r\n\r\n", compressed(b"")])
def test_empty_file_is_accepted(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "payments"
    file.write_bytes(content)

    call_command("import_payments", str(file))

    assert not Payment.objects.exists()


# Files whose content would fill the memory.


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with fresh_database(tmp_path_factory.mktemp("broken")) as url:
        service = Service(url)
        service.create_organization(1)
        yield service


def long_line(file: Path) -> None:
    file.write_bytes(lines(GOOD) + b'{"id":"' + b"x" * 50 * MB + b'"}\n')


def gzip_bomb(file: Path) -> None:
    file.write_bytes(gzip.compress(lines(GOOD) + b'{"id":"') + gzip.compress(b"x" * MB) * 50)


def long_cell(file: Path) -> None:
    file.write_bytes(CSV_ROW + b"x" * 50 * MB + b'"\n')


def quotation_mark_that_is_not_closed(file: Path) -> None:
    file.write_bytes(CSV_ROW + (b"x" * 1000 + b"\n") * 50_000)


def row_of_long_cells(file: Path) -> None:
    cell = b'"' + (b"x" * 1000 + b"\n") * 15_000 + b'"'
    file.write_bytes(CSV_ROW + b'",' + b",".join([cell] * 10) + b"\n")


def gzip_bomb_of_csv(file: Path) -> None:
    file.write_bytes(gzip.compress(CSV_ROW) + gzip.compress((b"x" * 1000 + b"\n") * 1000) * 250)


def header_that_is_too_long(file: Path) -> None:
    file.write_bytes(b"id,mode," + b"x," * (VALUE_BYTES_MAX // 2) + b"\n")


# A small process starts the program, because a child's peak includes the memory of its parent.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def run_measured(service: Service, *arguments: str | Path) -> tuple[int, str]:
    """Run Python. Return its peak memory, in KB, and its stderr."""
    python = sys.executable
    process = run_command([python, "-c", MEASURE, python, *arguments], cwd=ROOT, env=service.environment)
    return int(process.stdout), process.stderr


@pytest.fixture(scope="module")
def normal_memory(service: Service, tmp_path_factory: pytest.TempPathFactory) -> int:
    """The peak memory of an import of one payment, in KB."""
    good = tmp_path_factory.mktemp("good") / "good"
    good.write_bytes(lines(GOOD))
    memory, _ = run_measured(service, "manage.py", "import_payments", good)
    return memory


class TooLarge(NamedTuple):
    """A file that would fill the memory, and its refusal: the line, the records before it, and the memory in KB."""

    make: Callable[[Path], None]
    line_number: int
    read: int
    memory_max: int
    bytes_max: int = VALUE_BYTES_MAX


@pytest.mark.processes
@pytest.mark.once
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(TooLarge(long_line, 2, 1, MEMORY_MAX), marks=pytest.mark.extended),
        TooLarge(gzip_bomb, 2, 1, MEMORY_MAX),
        pytest.param(TooLarge(long_cell, 2, 0, CSV_MEMORY_MAX, RAW_BYTES_MAX), marks=pytest.mark.extended),
        pytest.param(
            TooLarge(quotation_mark_that_is_not_closed, 2, 0, CSV_MEMORY_MAX, RAW_BYTES_MAX), marks=pytest.mark.extended
        ),
        pytest.param(TooLarge(row_of_long_cells, 2, 0, CSV_MEMORY_MAX, RAW_BYTES_MAX), marks=pytest.mark.extended),
        pytest.param(TooLarge(gzip_bomb_of_csv, 2, 0, CSV_MEMORY_MAX, RAW_BYTES_MAX), marks=pytest.mark.extended),
        pytest.param(
            TooLarge(header_that_is_too_long, 1, 0, CSV_MEMORY_MAX, RAW_BYTES_MAX), marks=pytest.mark.extended
        ),
    ],
    ids=lambda case: case.make.__name__,
)
def test_file_that_would_fill_the_memory_is_refused_early(
    service: Service, normal_memory: int, tmp_path: Path, case: TooLarge
) -> None:
    bad = tmp_path / "bad"
    case.make(bad)

    memory, messages = run_measured(service, "manage.py", "import_payments", bad)

    assert messages.splitlines() == [
        f"{bad}:{case.line_number}: longer than {case.bytes_max} bytes",
        f"CommandError: {case.read} records read: 1 refused. Nothing was changed.",
    ]
    assert memory - normal_memory < case.memory_max
    assert service.exported() == lines(GOOD).decode()


@pytest.mark.processes
@pytest.mark.once
def test_program_that_reads_the_whole_file_exceeds_the_limit(service: Service, tmp_path: Path) -> None:
    normal_memory, _ = run_measured(service, "-c", "")
    for make in (long_line, gzip_bomb):
        make(tmp_path / "bad")

        memory, _ = run_measured(service, "-c", READ_WHOLE, tmp_path / "bad")

        assert memory - normal_memory > MEMORY_MAX
