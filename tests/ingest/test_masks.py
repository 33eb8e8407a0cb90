"""A masked card number in another spelling is stored as the API writes it. No digit is guessed."""

from pathlib import Path

import pytest
from django.core.management import call_command
from msgspec import Raw

from payments.ingest.errors import InvalidRecord
from payments.ingest.fast_path import parse_canonical
from payments.ingest.stored_rows import stored_row
from payments.ingest.validation import validate_record
from payments.models import Organization, Payment
from tests.support.lines import CSV_CELLS, compact, export_payments, line

pytestmark = pytest.mark.once

SPELLINGS = {
    "4111 11XX XXXX 1111": [
        "4111 11XX XXXX 1111",
        "411111XXXXXX1111",
        "411111xxxxxx1111",
        "411111******1111",
        "411111######1111",
        "411111••••••1111",
        "411111●●●●●●1111",
        "411111∙∙∙∙∙∙1111",
        "411111······1111",
        "411111××××××1111",  # noqa: RUF001
        "411111∗∗∗∗∗∗1111",  # noqa: RUF001
        "411111＊＊＊＊＊＊1111",  # noqa: RUF001
        "４１１１１１ＸＸＸＸＸＸ１１１１",  # noqa: RUF001
        "411111хххххх1111",  # noqa: RUF001  Cyrillic
        "4111 11** **** 1111",
        "4111 11•• •••• 1111",
        "4111-11xx-xxxx-1111",
        "4111.11XX.XXXX.1111",
        "4111\u00a011XX\u00a0XXXX\u00a01111",
        "4111 11Xx xXXX 1111",
        " 4111 11XX XXXX 1111 ",
        "411111 XXXXXX 1111",
    ],
    "4111 1111 XXXX 1111": ["41111111XXXX1111", "4111 1111 **** 1111"],
    "XXXX XXXX XXXX 1111": ["XXXXXXXXXXXX1111", "************1111", "•••• •••• •••• 1111", "xxxx-xxxx-xxxx-1111"],
    "4111 XXXX XXXX 1111": ["4111********1111", "4111 xxxx xxxx 1111"],
    "XXXX XXXX XXXX XXXX": ["****************"],
    "3712 XXXX XXX1 234": ["3712 XXXXXX X1234", "3712-******-*1234", "3712XXXXXXX1234", "3712 xxxx xxx1 234"],
    "3782 82XX XXX0 005": ["378282*****0005", "3782 82XXXX X0005", "3782 82•••• •0005"],
    "3056 93XX XX59 04": ["3056 93XXXX 5904", "305693****5904"],
    "4222 22XX X222 2": ["422222***2222"],
    "6304 0000 XXXX XXX0 000": ["63040000XXXXXXX0000", "6304 0000 **** ***0 000", "63040000-xxxxxxx-0000"],
}
PAIRS = [(spelling, stored) for stored, spellings in SPELLINGS.items() for spelling in spellings]


@pytest.mark.parametrize(("spelling", "stored"), PAIRS)
def test_mask_is_stored_in_groups_of_four(spelling: str, stored: str) -> None:
    text = line(details={"cardHolder": "A. Baker", "cardNumber": spelling, "n": 1.50, "z": {"é": []}})
    expected = line(details={"cardHolder": "A. Baker", "cardNumber": stored, "n": 1.50, "z": {"é": []}})

    row = stored_row(validate_record(text).record)

    assert row == stored_row(validate_record(expected).record)
    assert (parse_canonical(text) or row) == row


@pytest.mark.parametrize(
    "spelling",
    [
        "4111111111111111",
        "411111111XXX1111",  # nine and four of 16
        "411111XXXXX11111",
        "41111111*******11111",
        "37828224XXX0005",  # eight of 15
        "3782 822463 1XXXX",
        "3712 XXXXXX 01234",
        "XXXX1234",  # how many digits are hidden?
        "****1234",
        "**** 1234",
        "•••• 4242",
        "...1234",
        "1234",
        "x-1234",
        "4111...1111",
        "411111...1111",
        "4242***4242",
        "XXXXXXXX1234",
        "411111XXXXXXXXXX1111",  # 20 digits
        "411111XX****1111",  # two characters
        "4111·11XX·XXXX·1111",
        "4111•11XX•XXXX•1111",
        "4111XX11XXXX1111",  # hidden in two places
        "411111XXXXXX1111 12/26",
        "Visa 411111******1111",
        "411111??????1111",
        "411111------1111",
        "411111000000111A",
        "",
        " ",
    ],
)
def test_other_text_is_refused(spelling: str) -> None:
    text = line(details={"cardNumber": spelling})

    assert parse_canonical(text) is None
    with pytest.raises(
        InvalidRecord, match=r"^details\.cardNumber: must be masked, in groups of four, [^;]+\Z"
    ) as error:
        validate_record(text)
    assert "1111" not in str(error.value)


def test_mask_of_another_member_stays() -> None:
    details = {"card": {"cardNumber": "411111******1111"}, "number": "411111******1111"}

    assert validate_record(line(details=details)).record.details == Raw(compact(details))


@pytest.mark.django_db
def test_mask_in_a_csv_file_is_exported_in_groups_and_imported_unchanged(
    organization: Organization, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cells = CSV_CELLS | {"details.cardNumber": "411111******1111"}
    csv_file, export = tmp_path / "payments.csv", tmp_path / "payments.jsonl"
    csv_file.write_text("\n".join(",".join(row) for row in (cells, cells.values())))

    call_command("import_payments", str(csv_file))
    export.write_bytes(b"".join(export_payments(Payment.objects.all())))
    call_command("import_payments", str(csv_file), str(export))

    assert b'"cardNumber":"4111 11XX XXXX 1111"' in export.read_bytes()
    assert "2 records read: 0 payments created, 0 changed, 2 unchanged" in capfd.readouterr().err
