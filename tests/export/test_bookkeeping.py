"""CSV for a bookkeeper: chosen columns, local times, amounts with a decimal comma, and totals of the payments."""

import csv
import io
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from payments.export.bookkeeping import COLUMNS, Book, BookOptions, parse_columns
from payments.ingest.formats.spreadsheets import FORMULA, protect_formulas
from payments.models import Payment, Status
from payments.rows import select_columns
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.lines import MISSING, line, store

Run = Callable[..., list[list[str]]]

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t"}
PLAIN = "id,amount.value,refunded,fees,net"


@pytest.fixture
def run(db: None, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """A function that exports CSV and returns its rows."""

    def run(*arguments: str, delimiter: str = ",") -> list[list[str]]:
        call_command("export_payments", "--format", "csv", *arguments)
        text = capsysbinary.readouterr().out.decode("utf-8-sig")
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))

    return run


def test_file_has_exactly_these_bytes(db: None, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Excel needs the byte order mark. The refund and the fee are known in the currency of the amount."""
    organization = OrganizationFactory.create(id=1, time_zone="Europe/Amsterdam")
    PaymentFactory.create(
        id="pt_1",
        organization=organization,
        amount=Decimal("1234.50"),
        amount_net=Decimal("1200.25"),
        amount_net_currency="EUR",
        amount_remaining=Decimal("1234.00"),
        amount_remaining_currency="EUR",
        description="Café; 00084820",
        customer_id="ct_1",
        metadata='{"order":"84820","note":"-1"}',
        created_at=datetime(2026, 10, 31, 22, 30, 0, 999_000, tzinfo=UTC),
    )
    options = ("--decimal", "comma", "--delimiter", "semicolon", "--totals")

    call_command("export_payments", "--organization", "1", "--format", "csv", *options)

    assert capsysbinary.readouterr().out.decode() == (
        "\ufeffPayment;Created (Europe/Amsterdam);Paid (Europe/Amsterdam);Amount;Currency;Refunded;Fees;Net;Status;"
        "Method;Customer;Description;Metadata\r\n"
        "pt_1;2026-10-31 23:30:00;2026-10-31 23:30:07;1234,50;EUR;0,50;34,25;1200,25;succeeded;creditcard;ct_1;"
        '"Café; 00084820";order: 84820, note: -1\r\n'
        "\r\n"
        "Total EUR: succeeded payments;1\r\n"
        "Total EUR: paid;1234,50\r\n"
        "Total EUR: refunded;0,50\r\n"
        "Total EUR: fees;34,25\r\n"
        "Total EUR: net;1200,25\r\n"
    )


@pytest.mark.parametrize(
    ("arguments", "heading"),
    [
        (["--organization", "1"], "Created (Asia/Tokyo)"),
        (["--organization", "1", "--time-zone", "UTC"], "Created (UTC)"),
        ([], "Created (UTC)"),
    ],
)
def test_zone_is_that_of_the_organization_unless_it_is_chosen(run: Run, arguments: list[str], heading: str) -> None:
    OrganizationFactory.create(id=1, time_zone="Asia/Tokyo")

    assert run(*arguments, "--columns", "createdAt") == [[heading]]


@pytest.mark.parametrize(
    ("zone", "moment", "cell"),
    [
        ("Europe/Amsterdam", "2026-10-25T00:59:59.999", "2026-10-25 02:59:59"),  # the hour occurs twice
        ("Europe/Amsterdam", "2026-10-25T01:00:00.000", "2026-10-25 02:00:00"),
        ("Europe/Amsterdam", "2026-03-29T01:00:00.000", "2026-03-29 03:00:00"),
        ("America/New_York", "2026-01-01T04:59:59.999", "2025-12-31 23:59:59"),
        ("America/New_York", "0001-01-01T00:00:00.000", "0001-01-01 00:00:00"),
        ("Asia/Tokyo", "9999-12-31T23:00:00.000", "9999-12-31 23:59:59"),
    ],
)
@pytest.mark.django_db
def test_times_are_local_times(zone: str, moment: str, cell: str) -> None:
    store([line(createdAt=moment, paidAt=MISSING, expiresAt=MISSING, status="open")])

    assert written(columns=["createdAt", "paidAt"], time_zone=zone) == [[cell, ""]]


def written(**options: Any) -> list[list[str]]:
    """Return the rows of a file with all payments, without the headings."""
    content = Book(BookOptions(**options)).write(select_columns(Payment.objects.order_by("id")))
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def test_every_field_can_be_chosen_and_has_a_heading(run: Run) -> None:
    store([line()])
    record = json.loads(line())

    headings, cells = run("--columns", ",".join([*COLUMNS, "metadata.zeta", "metadata.x", "details.x"]))

    row = dict(zip(headings, cells, strict=True))
    assert len(row) == len(headings)
    assert row["Payment"] == record["id"]
    assert (row["Net amount"], row["Net currency"]) == ("9.55", "EUR")
    assert (row["Remaining amount"], row["Remaining currency"]) == ("10.00", "EUR")
    assert (row["Card number"], row["Card label"]) == ("4242 42XX XXXX 4242", "Visa")
    assert (row["Metadata"], row["Metadata: zeta"], row["Metadata: x"], row["X"]) == ("zeta: 1, alpha: 2", "1", "", "")
    assert (row["Mode"], row["Organization"], row["Sequence type"]) == ("live", record["organizationId"], "oneoff")
    assert (row["Redirect URL"], row["Webhook URL"]) == (record["redirectUrl"], record["webhookUrl"])
    assert row["Expires (UTC)"] == record["expiresAt"][:19].replace("T", " ")


def many_columns(count: int) -> str:
    return ",".join(f"metadata.{number}" for number in range(count))


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ("id", ["id"]),
        ("paidAt,id,paidAt", ["paidAt", "id"]),
        ("amount", ["amount.value", "amount.currency"]),
        ("amount.currency,amountNet", ["amount.currency", "amountNet.value", "amountNet.currency"]),
        (many_columns(100), many_columns(100).split(",")),
        (f"details.{'k' * 1024}", [f"details.{'k' * 1024}"]),
        ("net,metadata.order.no,details.cardNumber", ["net", "metadata.order.no", "details.cardNumber"]),
    ],
)
def test_columns_have_the_names_of_the_api(names: str, columns: list[str]) -> None:
    assert parse_columns(names.split(",")) == columns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "csv", "--columns", "id,Amount"], "--columns: 'Amount' is not a column. Use id, createdAt, "),
        (["--format", "csv", "--columns", ""], "--columns: '' is not a column"),
        (["--format", "csv", "--columns", "id,"], "--columns: '' is not a column"),
        (["--format", "csv", "--columns", "metadata."], "--columns: 'metadata.' is not a column"),
        (["--format", "csv", "--columns", "metadata.a\0"], "--columns: 'metadata.a\\x00' is not a column"),
        (["--format", "csv", "--columns", f"metadata.{'k' * 1025}"], "kk' is not a column"),
        (["--format", "csv", "--columns", many_columns(101)], "--columns: Choose at most 100 columns."),
        (["--format", "csv", "--time-zone", "Mars"], "--time-zone: Enter the IANA name of a time zone"),
        (["--format", "csv", "--time-zone", "../UTC"], "--time-zone: Enter the IANA name of a time zone"),
        (["--format", "csv", "--decimal", ","], "--decimal: invalid choice: ','"),
        (["--format", "csv", "--delimiter", "pipe"], "--delimiter: invalid choice: 'pipe'"),
        (["--format", "xlsx"], "--format: invalid choice: 'xlsx'"),
        (["--columns", "id"], "--columns needs --format csv."),
        (["--decimal", "point"], "--decimal needs --format csv."),
        (["--delimiter", "comma"], "--delimiter needs --format csv."),
        (["--time-zone", "UTC"], "--time-zone needs --format csv."),
        (["--format", "jsonl", "--totals"], "--totals needs --format csv."),
    ],
)
@pytest.mark.django_db
def test_invalid_options_are_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=re.escape(message)) as raised:
        call_command("export_payments", *arguments)

    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("options", [[], ["--columns", "id"]])
def test_changes_can_be_written_as_csv(run: Run, tmp_path: Any, options: list[str]) -> None:
    organization = OrganizationFactory.create(id=1)
    PaymentFactory.create(id="pt_1", organization=organization)
    arguments = ("--organization", "1", "--mode", "live")

    changed = run(*arguments, "--changes", "--token-file", str(tmp_path / "token"), *options)

    assert changed == run(*arguments, *options)
    assert [row[0] for row in changed[1:]] == ["pt_1"]


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ({}, ["10.00", "", "", ""]),
        ({"amount_net": "9.55", "amount_remaining": "0.00"}, ["10.00", "10.00", "0.45", "9.55"]),
        ({"amount": "-0.05", "amount_net": "-0.06", "amount_remaining": "-0.05"}, ["-0.05", "0.00", "0.01", "-0.06"]),
        ({"amount_net": "9.55", "amount_net_currency": "USD"}, ["10.00", "", "", ""]),
        ({"amount_remaining": "9.00", "amount_remaining_currency": "USD"}, ["10.00", "", "", ""]),
        ({"amount_net": "9.55", "amount_remaining": "0.00", "status": Status.OPEN}, ["10.00", "", "", ""]),
    ],
)
@pytest.mark.django_db
def test_figures_are_those_of_succeeded_payments_in_one_currency(values: dict[str, Any], cells: list[str]) -> None:
    amounts = {name: Decimal(values[name]) for name in ("amount", "amount_net", "amount_remaining") if name in values}
    currencies: dict[str, Any] = {f"{name}_currency": "EUR" for name in amounts}
    PaymentFactory.create(**(currencies | values | amounts))

    assert written(columns=PLAIN.split(",")[1:]) == [cells]


def test_totals_name_the_payments_whose_figures_are_known(run: Run) -> None:
    """Test payments are never in the same total as live ones, and payments without a figure are counted."""
    known = {"amount_net": Decimal("9.50"), "amount_net_currency": "EUR"}
    for values in (known, {}, {"failed": True}, {"test": True}, {"amount_currency": "USD", "failed": True}):
        PaymentFactory.create(**values)

    rows = run("--columns", "id", "--totals")

    assert rows[6:] == [
        [],
        ["Total EUR: succeeded payments", "2"],
        ["Total EUR: paid", "20.00"],
        ["Total EUR: refunded", "", "known for 0 of 2 payments"],
        ["Total EUR: fees", "0.50", "known for 1 of 2 payments"],
        ["Total EUR: net", "9.50", "known for 1 of 2 payments"],
        ["Total EUR (test): succeeded payments", "1"],
        ["Total EUR (test): paid", "10.00"],
        ["Total EUR (test): refunded", "", "known for 0 of 1 payments"],
        ["Total EUR (test): fees", "", "known for 0 of 1 payments"],
        ["Total EUR (test): net", "", "known for 0 of 1 payments"],
    ]


def test_file_without_succeeded_payments_has_no_totals(run: Run) -> None:
    PaymentFactory.create(id="pt_1", open=True)

    assert run("--columns", "id", "--totals") == [["Payment"], ["pt_1"]]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        *((f"{sign}1", f"'{sign}1") for sign in "=+-@\uff1d\uff0b\uff0d\uff20"),
        *((f"{space}=1", f"{space}'=1") for space in (" ", "\t", "\r", "\n", "\r\n", "\u00a0", " \t ")),
        *((f"Tea{delimiter}=1", f"Tea{delimiter}'=1") for delimiter in (",", ";", "\t", "\r\n", " , ", ";\n", " \t ")),
        *((text, text) for text in ("00084820", "1E5", "2026-01-01", "TRUE", "'=1", "a=b", "a - b", "1,5", "", " ")),
        ("=1,=2", "'=1,'=2"),
        (", =1", ", '=1"),
    ],
)
def test_texts_are_protected_from_formulas_alone(text: str, cell: str) -> None:
    assert protect_formulas(text) == cell


@given(st.lists(st.sampled_from([*"=-+@\uff1d',;\t\r\n a1"]), max_size=9).map("".join))
def test_no_delimiter_leaves_a_cell_that_starts_with_a_formula(text: str) -> None:
    protected = protect_formulas(text)

    for cell in (protected, *re.split("[,;\t\r\n]", protected)):
        assert re.match(rf"\s*[{FORMULA}]", cell) is None
    assert protected.replace("'", "") == text.replace("'", "")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("description", "'=1"),
        ("method", "'-1"),
        ("redirectUrl", "myapp:x,'=1"),
        ("metadata", "'@k: x;'=1"),
        ("metadata.@k", "x;'=1"),
        ("details", "'+k: =1"),
        ("details.+k", "'=1"),
    ],
)
def test_every_text_of_a_merchant_is_protected(column: str, cell: str) -> None:
    documents = {"metadata": {"@k": "x;=1"}, "details": {"+k": "=1"}}
    store([line(**documents, redirectUrl="myapp:x,=1", description="=1", method="-1")])

    assert written(columns=[column]) == [[cell]]


@pytest.mark.django_db
def test_heading_is_protected(run: Run) -> None:
    assert run("--columns", "details.=1+1") == [["'=1+1"]]


SEED = 7


def random_payments(count: int) -> list[dict[str, Any]]:
    """Return random records of an organization."""
    choose = random.Random(SEED)  # noqa: S311  test data
    currencies = ["EUR", "EUR", "USD", "JPY"]

    def money() -> Any:
        value = Decimal(choose.randrange(-500, 10 ** choose.randrange(3, 13))).scaleb(-2)
        return {"value": f"{value:.2f}", "currency": choose.choice(currencies)}

    def moment() -> str:
        return datetime.fromtimestamp(choose.randrange(10**9, 2 * 10**9), UTC).isoformat()[:19] + ".123"

    return [
        {
            "id": f"pt_{number}",
            "amount": money(),
            "amountNet": choose.choice([MISSING, money()]),
            "amountRemaining": choose.choice([MISSING, money()]),
            "status": choose.choice([*["succeeded"] * 3, "failed", "open", "expired"]),
            "description": choose.choice(["Tea", "=1", "a;b", 'c"d', "e,f", "1.50", "\n-x"]),
            "createdAt": moment(),
            "paidAt": moment(),
            "expiresAt": MISSING,
        }
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("decimal", "delimiter", "zone"),
    [
        ("point", "comma", "UTC"),
        ("comma", "comma", "Europe/Amsterdam"),
        ("comma", "semicolon", "Australia/Lord_Howe"),
        ("point", "tab", "America/New_York"),
    ],
)
def test_file_equals_a_reference_in_plain_python(run: Run, decimal: str, delimiter: str, zone: str) -> None:
    records = random_payments(60)
    store(line(**record) for record in records)
    columns = "id,createdAt,amount,refunded,net,fees,paidAt,description"
    options = ("--decimal", decimal, "--delimiter", delimiter, "--time-zone", zone, "--totals", "--columns", columns)

    rows = run(*options, delimiter=DELIMITERS[delimiter])

    assert rows == expected_rows(records, ZoneInfo(zone), "," if decimal == "comma" else ".")


def expected_rows(records: Sequence[dict[str, Any]], zone: ZoneInfo, sign: str) -> list[list[str]]:
    """Return the rows of a file: headings, payments and totals."""
    newest_first = sorted(records, key=lambda record: (record["createdAt"], record["id"]), reverse=True)
    sums: dict[str, dict[str, list[Decimal]]] = defaultdict(lambda: defaultdict(list))
    rows = []
    for record in newest_first:
        amount, currency = Decimal(record["amount"]["value"]), record["amount"]["currency"]
        figures: dict[str, Decimal] = {}
        if record["status"] == "succeeded":
            figures = {"paid": amount}
            net, remaining = record["amountNet"], record["amountRemaining"]
            if net is not MISSING and net["currency"] == currency:
                figures |= {"fees": amount - Decimal(net["value"]), "net": Decimal(net["value"])}
            if remaining is not MISSING and remaining["currency"] == currency:
                figures["refunded"] = amount - Decimal(remaining["value"])
        for name, value in figures.items():
            sums[currency][name].append(value)
        local = [
            str(datetime.fromisoformat(record[name] + "+00:00").astimezone(zone))[:19]
            for name in ("createdAt", "paidAt")
        ]
        description = {"=1": "'=1", "\n-x": "\n'-x"}.get(record["description"], record["description"])
        money = [str(figures.get(name, "")) for name in ("refunded", "net", "fees")]
        rows.append([record["id"], local[0], str(amount), currency, *money, local[1], description])
        rows[-1][2:7] = [cell.replace(".", sign) for cell in rows[-1][2:7]]
    created, paid = f"Created ({zone})", f"Paid ({zone})"
    headings = ["Payment", created, "Amount", "Currency", "Refunded", "Net", "Fees", paid, "Description"]
    return [headings, *rows, [], *expected_totals(sums, sign)]


def expected_totals(sums: dict[str, dict[str, list[Decimal]]], sign: str) -> list[list[str]]:
    rows = []
    for currency in sorted(sums, key=lambda currency: (-len(sums[currency]["paid"]), currency)):
        count = len(sums[currency]["paid"])
        rows.append([f"Total {currency}: succeeded payments", str(count)])
        for name in ("paid", "refunded", "fees", "net"):
            values = sums[currency][name]
            note = [] if len(values) == count else [f"known for {len(values)} of {count} payments"]
            cell = str(sum(values)).replace(".", sign) if values else ""
            rows.append([f"Total {currency}: {name}", cell, *note])
    return rows
