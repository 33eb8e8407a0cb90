"""Exports to CSV that another program opens and saves are imported without a loss, a refusal or a change."""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from django.db import connection

from payments.export.files import FORMATS, TITLES, write_csv
from payments.ingest import import_payments
from payments.models import METHOD, Payment
from payments.rows import select_columns
from tests.support.commands import output_of
from tests.support.installed import CACHE, install_debian, install_python
from tests.support.lines import MISSING, export_payments, fail, line, source, store
from tests.support.processes import ROOT
from tests.support.scale import report

pytestmark = [pytest.mark.long, pytest.mark.processes]

TEXTS = [json.loads(text)["text"] for text in (ROOT / "tests/documents/spreadsheets.jsonl").read_text().splitlines()]
FORMULAS = ["=1+1", "+1", "-5 percent", "@SUM(A1)", "\tTea", "\uff1d1", "Tea;=1", "Tea\n-1", "-1\n'=2", "-", "+10.00"]
AMOUNTS = ["10.00", "-12.50", "1234567.89", "9999999999999.99", "0.00", "0.10", "-0.05"]
TIMES = ["2026-03-29T01:30:00.120", "2026-03-29T01:30:00.000", "2018-12-31T23:59:59.999", "2026-01-01T00:00:00.000"]


def payments() -> Iterator[bytes]:
    """Yield a payment for each text as it is, with apostrophes at its start, and as a text in a document."""
    descriptions = [f"{start}{text}" for text, start in product([*TEXTS, *FORMULAS], ("", "'", "''"))]
    for number, text in enumerate(descriptions):
        value, other = AMOUNTS[number % 7], AMOUNTS[number % 5]
        yield line(
            id=f"pt_{number}",
            organizationId=("7", f"{2**63 - 1}", "1234567890123")[number % 3],
            amount={"value": value, "currency": "EUR"},
            amountNet={"value": other, "currency": "JPY"} if number % 2 else MISSING,
            description=text,
            method=text if re.fullmatch(METHOD, text) else MISSING,
            metadata={"order": text, text: "00084820"},
            details={"note": text} if number % 3 else MISSING,
            createdAt=TIMES[number % 4],
            expiresAt=MISSING,
            paidAt=TIMES[number % 3],
        )


# The separator of a file, the number of the language, and whether special numbers such as dates are detected.
CALC = {
    f"calc {language}{', detecting' if detects else ''}{', by way of xlsx' if is_xlsx else ''}": (
        f"{ord(separator)},34,76,1,,{number},false,{str(detects).lower()}",
        is_xlsx,
    )
    for language, number, separator in (("English", 1033, ","), ("German", 1031, ";"), ("French", 1036, ";"))
    for detects in (False, True)
    for is_xlsx in (False, True)
}
# The character with which Gnumeric separates cells, by its language.
GNUMERIC = {"C.UTF-8": ",", "de_DE.UTF-8": ";"}
READ_CSV = "import pandas; pandas.read_csv('in.csv'{}).to_csv('out.csv', index=False)"
DUCKDB = "import duckdb; duckdb.read_csv('in.csv'{}).write_csv('out.csv')"
SQLITE = [".mode csv", ".import in.csv t", ".headers on", ".output out.csv", "select * from t"]

# The commands that read in.csv and write out.csv. Those in Python have an environment of their own.
COMMANDS: dict[str, list[str]] = {
    "pandas": ["python", "-c", READ_CSV.format("")],
    "pandas, as texts": ["python", "-c", READ_CSV.format(", dtype=str, keep_default_na=False")],
    "duckdb": ["python", "-c", DUCKDB.format("")],
    "duckdb, as texts": ["python", "-c", DUCKDB.format(", all_varchar=True")],
    "csvkit": ["sh", "-c", "csvformat in.csv >out.csv"],
    "csvkit, with a semicolon": ["sh", "-c", "csvformat --out-delimiter ';' in.csv >out.csv"],
    "csvkit, with types": ["sh", "-c", "csvsort --columns id in.csv >out.csv"],
    "miller": ["sh", "-c", "mlr --csv cat in.csv >out.csv"],
    "miller, sorted and quoted": ["sh", "-c", "mlr --csv --quote-all sort -f id in.csv >out.csv"],
    "sqlite3": ["sqlite3", ":memory:", *SQLITE],
}


@pytest.fixture(scope="module", autouse=True)
def programs() -> Path:
    """Install the programs, and return the directory of those in Python."""
    install_debian("libreoffice-calc", "libreoffice-l10n-de", "gnumeric", "locales", "miller", "sqlite3")
    CACHE.mkdir(parents=True, exist_ok=True)
    output_of(["localedef", "-i", "de_DE", "-f", "UTF-8", CACHE / "de_DE.UTF-8"])
    return install_python("spreadsheets", "pandas", "duckdb", "csvkit")


@pytest.fixture
def file(db: None, tmp_path: Path) -> Path:
    """Store the payments, and export them to in.csv."""
    store(payments())
    path = tmp_path / "in.csv"
    path.write_bytes(FORMATS["csv"].start + write_csv(list(select_columns(Payment.objects.all()))))
    return path


def assert_unchanged(saved: bytes, *, name: str) -> None:
    """Require that an import of a file reads all payments and changes none."""
    before = list(export_payments(Payment.objects.all()))

    result = import_payments([source(saved, name)], on_refused=fail)

    changed = set(export_payments(Payment.objects.all())).difference(before)
    assert (result.read, sorted(changed)) == (len(before), [])
    report(f"{name}: {result.read} payments, nothing changed")


@pytest.mark.parametrize("name", CALC)
def test_libreoffice_changes_nothing(file: Path, name: str) -> None:
    options, is_xlsx = CALC[name]
    separator = chr(int(options.partition(",")[0]))
    file.write_text(with_separator(file.read_text(), separator))
    office = ["soffice", f"-env:UserInstallation=file://{CACHE}/office", "--headless", "--convert-to"]
    to_csv = [*office, f"csv:Text - txt - csv (StarCalc):{options}", "--outdir", "out"]

    if is_xlsx:
        output_of([*office, "xlsx", f"--infilter=CSV:{options}", file], cwd=file.parent)
        output_of([*to_csv, "in.xlsx"], cwd=file.parent)
    else:
        output_of([*to_csv, f"--infilter=CSV:{options}", file], cwd=file.parent)

    assert_unchanged((file.parent / "out/in.csv").read_bytes(), name=name)


def with_separator(text: str, separator: str) -> str:
    rows = csv.reader(io.StringIO(text, newline=""))
    changed = io.StringIO()
    csv.writer(changed, delimiter=separator).writerows(rows)
    return changed.getvalue()


@pytest.mark.parametrize("language", GNUMERIC)
def test_gnumeric_changes_nothing(file: Path, language: str) -> None:
    # By itself, it does not quote a semicolon within a cell.
    options = f"--export-options=separator='{GNUMERIC[language]}' quoting-mode=always"
    command = [
        "ssconvert",
        "--import-type=Gnumeric_stf:stf_csvtab",
        "--export-type=Gnumeric_stf:stf_assistant",
        options,
    ]

    output_of(
        [*command, "in.csv", "out.txt"], cwd=file.parent, env={**os.environ, "LOCPATH": f"{CACHE}", "LC_ALL": language}
    )

    assert_unchanged((file.parent / "out.txt").read_bytes(), name=f"gnumeric {language}")


@pytest.mark.parametrize("name", COMMANDS)
def test_data_program_changes_nothing(file: Path, programs: Path, name: str) -> None:
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    output_of(COMMANDS[name], cwd=file.parent, env={**os.environ, "PATH": path})

    assert_unchanged((file.parent / "out.csv").read_bytes(), name=name)


@pytest.mark.only("postgresql")
@pytest.mark.parametrize("has_types", [False, True])
def test_copy_of_postgresql_changes_nothing(file: Path, has_types: bool) -> None:
    ends = {".value": "numeric(15, 2)", "At": "timestamptz", "metadata": "json", "details": "json"}
    types = [next((ends[end] for end in ends if has_types and title.endswith(end)), "text") for title in TITLES]
    columns = ", ".join(f'"{title}" {type_}' for title, type_ in zip(TITLES, types, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(f"create temporary table t ({columns}) on commit drop")
        with cursor.copy("copy t from stdin csv header") as copy:
            copy.write(file.read_bytes())
        with cursor.copy("copy t to stdout csv header") as copy:
            saved = b"".join(copy)

    assert_unchanged(saved, name=f"postgresql{', with types' if has_types else ''}")
