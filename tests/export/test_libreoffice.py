"""LibreOffice opens a bookkeeper's CSV file in English and in German: amounts are numbers and times are dates."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from payments.export.bookkeeping import Book, BookOptions
from payments.models import Payment
from payments.rows import select_columns
from tests.support.commands import output_of
from tests.support.factories import NOON, PaymentFactory
from tests.support.installed import CACHE, install_debian
from tests.support.scale import report

pytestmark = [pytest.mark.long, pytest.mark.processes, pytest.mark.once]

COLUMNS = ("createdAt", "amount.value", "description")
TEXTS = ["=1+1", "Tea;=1+1", "\t-1", "@SUM(A1)"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "decimal", "delimiter", "separator"),
    [(1033, "point", "comma", ","), (1031, "comma", "semicolon", ";"), (1031, "comma", "tab", "\t")],
)
def test_amounts_are_numbers_and_times_are_dates(
    tmp_path: Path, language: int, decimal: str, delimiter: str, separator: str
) -> None:
    install_debian("libreoffice-calc")
    for text in TEXTS:
        PaymentFactory.create(description=text, amount=Decimal("-1234.50"), created_at=NOON)
    book = Book(BookOptions(COLUMNS, decimal, delimiter, "Asia/Tokyo", totals=True))
    content = book.start + book.write(select_columns(Payment.objects.order_by("id"))) + book.end()

    (tmp_path / "books.csv").write_bytes(content)
    office = ["soffice", f"-env:UserInstallation=file://{CACHE}/office", "--headless", "--convert-to", "fods"]
    output_of([*office, f"--infilter=CSV:{ord(separator)},34,76,1,,{language}", "books.csv"], cwd=tmp_path)
    sheet = (tmp_path / "books.fods").read_text()

    numbers = re.findall(r'office:value-type="float" office:value="([^"]+)"', sheet)
    assert numbers == [*["-1234.5"] * 4, "4", "-4938"]
    assert re.findall(r'office:date-value="([^"]+)"', sheet) == ["2026-01-01T21:00:00"] * 4
    assert "table:formula" not in sheet
    report(f"LibreOffice, language {language}, {delimiter}: numbers and dates")
