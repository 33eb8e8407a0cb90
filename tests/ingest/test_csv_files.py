"""CSV as spreadsheets, databases and people write it: amounts, headers, and empty objects."""

import pytest

from payments.ingest.batches import parse_sources
from payments.ingest.formats.sources import Source
from payments.ingest.stored_rows import StoredRow
from payments.ingest.validation import Options
from tests.support.lines import CSV_CELLS, line, source
from tests.support.streams import read_in_parts

pytestmark = pytest.mark.once  # no test uses the database

HEADER = ",".join(CSV_CELLS)
ROW = ",".join(CSV_CELLS.values())
NOT_CSV = "is neither JSON nor CSV. The first line of CSV must name the fields, such as id,mode"


def csv_file(cells: dict[str, str], *, delimiter: str = ",") -> bytes:
    """Return a file with one row, which has these cells and those that every row has."""
    cells = CSV_CELLS | cells
    return "\n".join(delimiter.join(f'"{text}"' for text in row) for row in (cells.keys(), cells.values())).encode()


def read(file: bytes | Source, *, ignores_unknown_fields: bool = False) -> StoredRow | str:
    """Return the only row of a file, or the reason why the file or the row is refused."""
    options = Options(ignores_unknown_fields=ignores_unknown_fields)
    [((_, result), *_)] = parse_sources([source(file) if isinstance(file, bytes) else file], options)
    return result if isinstance(result, StoredRow) else str(result).removeprefix("payments.jsonl:")


USUAL = read(csv_file({}))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    ("cell", "value"),
    [
        *[
            ("10", "10.00"),
            ("12.5", "12.50"),
            ("10.5000", "10.50"),
            ("-12.5", "-12.50"),
            ("0", "0.00"),
            ("0.0", "0.00"),
        ],
        *[
            ("0.500", "0.50"),
            ("10.00", "10.00"),
            ("9999999999999.99", "9999999999999.99"),
            ("'-1", "-1.00"),
            ("'10.5", "10.50"),
        ],
    ],
)
def test_amount_is_a_decimal_of_two_places(delimiter: str, cell: str, value: str) -> None:
    assert read(csv_file({"amount.value": cell}, delimiter=delimiter)) == read(csv_file({"amount.value": value}))


@pytest.mark.parametrize(
    ("cell", "value"), [("10,00", "10.00"), ("-12,5", "-12.50"), ("1234567,89", "1234567.89"), ("-0,100", "-0.10")]
)
def test_comma_may_separate_decimals_beside_semicolons(cell: str, value: str) -> None:
    assert read(csv_file({"amount.value": cell}, delimiter=";")) == read(csv_file({"amount.value": value}))
    assert str(read(csv_file({"amount.value": cell}, delimiter="\t"))).startswith("amount.value: must be a decimal")


def test_ten_point_five_hundred_has_two_places() -> None:
    assert read(csv_file({"amount.value": "10.500"})) == read(csv_file({"amount.value": "10.50"}))


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize(
    "cell",
    [
        *["10.505", "1E1", "1e1", "+10.00", ".5", ",5", "10.", "10,", "1,234.56", "1.234,56", "1 234.56", "1'234.56"],
        *[
            "010.00",
            " 10.00",
            "10.00 ",
            "1.2.3",
            "10,505",
            "1,234,567",
            "10 EUR",
            "€10",
            "--1",
            "-",
            "0x1",
            "\u0661",
            "NaN",
        ],
    ],
)
def test_any_other_amount_is_refused(delimiter: str, cell: str) -> None:
    reason = "must be a decimal, as text, with at most 13 digits before the point and exactly 2 after it"

    assert read(csv_file({"amount.value": cell}, delimiter=delimiter)) == f"amount.value: {reason}"


@pytest.mark.parametrize("cell", ["1.500", "1,500", "-10.000"])
def test_beside_semicolons_three_digits_may_be_thousands(cell: str) -> None:
    assert str(read(csv_file({"amount.value": cell}, delimiter=";"))).startswith("amount.value: must be a decimal")


@pytest.mark.parametrize("cell", ["-0", "-0.0", "-0.000"])
def test_negative_zero_is_refused(cell: str) -> None:
    assert read(csv_file({"amount.value": cell})) == "amount.value: must be written 0.00"


@pytest.mark.parametrize("value", ["10", "12.5", "10.500", "10,00"])
def test_amounts_in_json_and_values_in_metadata_stay_as_they_are(value: str) -> None:
    assert "amount.value" in str(read(line(amount={"value": value, "currency": "EUR"})))
    assert read(csv_file({"metadata.value": value})) == read(csv_file({"metadata": f'{{""value"":""{value}""}}'}))


@pytest.mark.parametrize(
    "file",
    [
        *[
            f"{start}\n{HEADER}\n{ROW}\n"
            for start in ("sep=,", '"sep=,"', "SEP=,\r", "\ufeffsep=,", "\ufeff\n\nsep=,\n")
        ],
        *[f"{start}\n{HEADER}\n{ROW}\n" for start in ("sep=,,,,,,,,,", " ", ",,,,,,,,", "\t", "---", "\n\n \n,,\n")],
        *["sep=;\n" + f"{HEADER}\n{ROW}".replace(",", ";"), "sep=\t\n" + f"{HEADER}\n{ROW}".replace(",", "\t")],
        *[f"{HEADER}\n{row}\n{ROW}\n\n" for row in ("---,----,-,,,,,,", "-- ,---", ",,,,,,,,", "  ", "")],
        *[
            HEADER.replace(",", f"{space},{space}") + f"{space}\n{ROW}"
            for space in (" ", "\xa0", "\t ", "\u200b", "\ufeff")
        ],
        *[f"{HEADER.upper()}\n{ROW}", f"{HEADER.title()}\n{ROW}", f"{HEADER.lower()}\n{ROW}"],
        *[f"\ufeff\ufeff{HEADER}\n{ROW}", f'"ID"{HEADER.removeprefix("id")}\n{ROW}'],
    ],
)
def test_marks_around_a_header_are_skipped(file: str) -> None:
    assert read(file.encode()) == USUAL
    assert read(read_in_parts(file.encode(), 1)) == USUAL


def test_names_within_documents_keep_their_case() -> None:
    assert read(csv_file({"Metadata.Order": "7"})) == read(csv_file({"metadata": '{""Order"":""7""}'}))


def test_column_with_the_exact_name_takes_precedence() -> None:
    file = csv_file({"ID": "7", "Status": "lost"})

    assert read(file) == "1: columns are unknown: ID, Status; --ignore-unknown-fields skips them"
    assert read(file, ignores_unknown_fields=True) == USUAL


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (HEADER.replace("id,", "Id, ID ,"), "1: columns occur more than once: id"),
        (f"sep=,\n{HEADER},fee", "2: columns are unknown: fee; --ignore-unknown-fields skips them"),
        (f"{HEADER},created_at", "1: columns are unknown: created_at; --ignore-unknown-fields skips them"),
        ("sep=|\n" + HEADER.replace(",", "|"), f"1: {NOT_CSV}"),
        ("sep=,", f"1: {NOT_CSV}"),
        ("sep=,\n", f"1: {NOT_CSV}"),
        (",,,\n", f"1: {NOT_CSV}"),
        (f"Payments of March\n{HEADER}", f"1: {NOT_CSV}"),
    ],
)
def test_header_that_is_not_clear_is_named(file: str, reason: str) -> None:
    assert read(file.encode()) == reason


@pytest.mark.parametrize("text", ["[]", "[ ]", "[\n]"])
@pytest.mark.parametrize("member", ["metadata", "details"])
def test_empty_array_is_an_empty_object(member: str, text: str) -> None:
    in_json = line(**{member: "?"}).replace(b'"?"', text.encode())

    assert read(in_json) == read(line(**{member: {}}))
    assert read(csv_file({member: text})) == read(csv_file({member: "{}"}))


@pytest.mark.parametrize("member", ["metadata", "details", "amount", "amountNet"])
@pytest.mark.parametrize("value", [[1], [[]], [{}], [None], "[]"])
def test_any_other_array_is_refused(member: str, value: object) -> None:
    assert str(read(line(**{member: value}))).startswith(f"{member}: must be a")


def test_empty_array_is_no_amount() -> None:
    assert read(line(amount=[])) == "amount.value: is missing; amount.currency: is missing"
