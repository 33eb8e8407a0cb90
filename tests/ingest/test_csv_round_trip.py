"""The admin's CSV export, imported again, gives the same payments as the JSON from which they were stored."""

import csv
import io
from contextlib import suppress
from operator import attrgetter, itemgetter
from typing import Any

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.export.files import FORMATS, write_csv
from payments.ingest.batches import parse_sources
from payments.ingest.errors import InvalidRecord
from payments.ingest.formats.sources import Source
from payments.ingest.formats.spreadsheets import FORMULA
from payments.ingest.stored_rows import StoredRow
from payments.ingest.validation import STRICT, validate_record
from payments.models import Payment, SequenceType, Status
from payments.rows import RowValues, select_columns
from tests.support.lines import compact, source, store
from tests.support.scale import examples
from tests.support.streams import read_in_parts

# Texts of characters that CSV, spreadsheets or JSON treat in a special way, and of any others.
SPECIAL = st.sampled_from([*FORMULA, *"'\"\\,;\t\r\n \u00a0\u2028\ufeff\x01\x7f", "\r\n", "''=", "null", "é", "😀"])
TEXTS = st.lists(SPECIAL | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3)).map(
    "".join
)
AMOUNTS = st.fixed_dictionaries(
    {
        "value": st.decimals(min_value=-99, max_value=9_999_999_999_999, places=2).map(
            lambda value: f"{value + 0:.2f}"
        ),
        "currency": st.sampled_from(["EUR", "JPY"]),
    }
)
TIMES = st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds"))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
URLS = st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=9).map("https://shop.example/{}".format)
RECORDS = st.fixed_dictionaries(
    {
        "id": st.text("aZ09_-", min_size=1, max_size=9).map("pt_{}".format),
        "mode": st.sampled_from(["live", "test"]),
        "amount": AMOUNTS,
        "description": TEXTS,
        "status": st.sampled_from(sorted(set(Status.values) - {Status.SUCCEEDED})),
        "organizationId": st.sampled_from(["1", f"{2**63 - 1}"]),
        "sequenceType": st.sampled_from(SequenceType.values),
        "metadata": st.dictionaries(TEXTS, TEXTS, max_size=3),
        "createdAt": TIMES,
    },
    optional={
        "amountNet": AMOUNTS,
        "amountRemaining": AMOUNTS,
        "method": st.text("aZ09_-", min_size=1, max_size=9),
        "redirectUrl": URLS,
        "webhookUrl": URLS,
        "details": st.dictionaries(
            TEXTS,
            st.recursive(
                st.none() | st.booleans() | NUMBERS | TEXTS,
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
                max_leaves=5,
            ),
            max_size=3,
        ),
        "expiresAt": TIMES,
        "paidAt": TIMES,
        "customerId": st.text("aZ09_-", min_size=1, max_size=9).map("ct_{}".format),
    },
)
PAYMENTS = st.lists(RECORDS, min_size=1, max_size=4, unique_by=itemgetter("id"))


def valid_lines(records: list[dict[str, Any]]) -> list[bytes]:
    """Return the records as lines, without those that resemble card data."""
    lines = []
    for line in map(compact, records):
        with suppress(InvalidRecord):
            validate_record(line)
            lines.append(line)
    return lines


def parsed(content: bytes | Source) -> list[StoredRow]:
    """Return the rows that an import would write, in the order of their IDs."""
    stream = source(content) if isinstance(content, bytes) else content
    results = [result for (_, result), *_ in parse_sources([stream], STRICT)]
    rows = [result for result in results if isinstance(result, StoredRow)]
    assert len(rows) == len(results), results
    return sorted(rows, key=attrgetter("id"))


def exported_rows(lines: list[bytes]) -> list[RowValues]:
    """Return the rows of an export after an import of the lines. The import is rolled back."""
    with transaction.atomic():
        store(lines)
        rows = list(select_columns(Payment.objects.all()))
        transaction.set_rollback(True)
    return rows


def with_separator(content: bytes, separator: str, *, line_end: str) -> bytes:
    rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode()


@pytest.mark.django_db
@settings(max_examples=examples(50))
@given(PAYMENTS)
def test_import_of_an_export_to_csv_gives_the_same_rows(records: list[dict[str, Any]]) -> None:
    lines = valid_lines(records)

    content = FORMATS["csv"].start + write_csv(exported_rows(lines))

    assert parsed(content) == parsed(b"\n".join(lines))


@pytest.mark.once
@pytest.mark.django_db
@settings(max_examples=examples(50))
@given(PAYMENTS, st.sampled_from(",;\t"), st.sampled_from(["\n", "\r\n"]), st.integers(1, 400))
def test_separator_line_ends_and_chunk_size_do_not_change_the_rows(
    records: list[dict[str, Any]], separator: str, line_end: str, size: int
) -> None:
    lines = valid_lines(records)
    export = FORMATS["csv"].start + write_csv(exported_rows(lines))

    rows = parsed(read_in_parts(with_separator(export, separator, line_end=line_end), size))

    assert rows == parsed(b"\n".join(lines))
