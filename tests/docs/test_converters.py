"""The programs of the folder `examples` that convert pages of other systems, and what the guide says about them."""

import importlib
import json
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from datetime import date
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pytest
from django.core.management import call_command
from django.test import Client

from payments.admin.payments.search_box import read_search
from payments.ingest.errors import InvalidRecord
from payments.ingest.validation import validate_record
from payments.models import ApiKey, Mode, Organization, Payment
from tests.support.api import Api, payment_ids
from tests.support.commands import output_of, run_command
from tests.support.factories import ApiKeyFactory
from tests.support.lines import export_payments
from tests.support.processes import ROOT
from tests.support.tools import needs_linux

Record: TypeAlias = dict[str, Any]
Run: TypeAlias = Callable[..., tuple[Any, str, str]]

pytestmark = pytest.mark.once

GUIDE = (ROOT / "docs/importing.md").read_text()
DOCUMENTS = ROOT / "tests/documents"
MOLLIE, STRIPE = "mollie_payments", "stripe_charges"
RECORDS: dict[str, Callable[[Any], list[Record]]] = {
    MOLLIE: lambda page: page["_embedded"]["payments"],
    STRIPE: lambda page: page["data"],
}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")


def page_of(name: str) -> Path:
    """Return the page that the program of the same name converts."""
    return DOCUMENTS / f"{name}.json"


def full(name: str) -> Record:
    """Return the record of the page that has all members, with other objects expanded."""
    return RECORDS[name](json.loads(page_of(name).read_text()))[-1]


def page_with(name: str, *records: Record) -> Any:
    page = json.loads(page_of(name).read_text())
    RECORDS[name](page)[:] = records
    return page


def write_page(directory: Path, page: Any) -> Path:
    file = directory / "page.json"
    file.write_text(json.dumps(page), encoding="utf-8-sig")
    return file


def converted(name: str, **changes: Any) -> Record:
    """Return the full record with changed members, as the program converts it. An import accepts it."""
    result: Record = importlib.import_module(name).convert(full(name) | changes, "7")
    validate_record(json.dumps(result).encode())
    return result


def refusal(name: str, **changes: Any) -> str:
    """Return why the full record with changed members cannot be converted."""
    module = importlib.import_module(name)
    with pytest.raises(importlib.import_module("members").InvalidMember) as error:
        module.convert(full(name) | changes, "7")
    return str(error.value)


def euros(value: str) -> Record:
    return {"value": value, "currency": "EUR"}


def conversion(name: str, *pages: Path | str) -> list[str | Path]:
    """Return the command that converts pages to payments of organization 7."""
    return [sys.executable, ROOT / f"examples/{name}.py", "7", *pages]


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a program in this process, and returns its exit status, stdout and stderr."""

    def run(name: str, *pages: Path | str) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", [name, "7", *map(str, pages)])
        status: Any = None
        try:
            runpy.run_path(str(ROOT / f"examples/{name}.py"), run_name="__main__")
        except SystemExit as error:
            status = error.code
        return status, *capsys.readouterr()

    return run


# Whole pages


@pytest.fixture
def shop(db: None) -> Organization:
    return Organization.objects.create(id=7, name="Books")


def api_of(client: Client, organization: Organization, mode: Mode) -> Api:
    key: ApiKey = ApiKeyFactory.create(organization=organization, mode=mode)
    return Api(client, key)


def import_page(name: str, directory: Path) -> None:
    file = directory / "payments.jsonl"
    file.write_text(output_of(conversion(name, page_of(name))))
    call_command("import_payments", "--verbosity", "0", str(file))


def import_and_export(name: str, client: Client, shop: Organization, directory: Path) -> tuple[Api, Api]:
    """Import a page, and check the export of its payments. Return the API with a live key and with a test key."""
    import_page(name, directory)
    exported = b"".join(export_payments(Payment.objects.all())).decode()
    assert exported == (DOCUMENTS / f"{name}.jsonl").read_text()
    return api_of(client, shop, Mode.LIVE), api_of(client, shop, Mode.TEST)


@pytest.mark.processes
def test_page_of_mollie_is_converted_imported_listed_and_filtered(
    client: Client, shop: Organization, tmp_path: Path
) -> None:
    live, test = import_and_export(MOLLIE, client, shop, tmp_path)

    assert payment_ids(live.get().json()) == [
        *("pt_tr_WDqYK6vllg", "pt_tr_failed1", "pt_tr_open1", "pt_tr_5B8cwPMGnU6qLbRvo7qEZo", "pt_tr_7UhSN1zuXS"),
    ]
    assert payment_ids(live.get(**{"metadata[items]": "3"}).json()) == ["pt_tr_5B8cwPMGnU6qLbRvo7qEZo"]
    assert payment_ids(live.get(customerId="ct_cst_8wmqcHMN4U", status="failed").json()) == ["pt_tr_failed1"]
    assert payment_ids(test.get(method="klarna").json()) == ["pt_tr_auth1"]


@pytest.mark.processes
def test_page_of_stripe_is_converted_imported_listed_and_filtered(
    client: Client, shop: Organization, tmp_path: Path
) -> None:
    live, test = import_and_export(STRIPE, client, shop, tmp_path)

    assert payment_ids(live.get().json()) == [
        *("pt_ch_3Pending", "pt_ch_3Full", "pt_ch_3Auth", "pt_ch_3Failed", "pt_ch_3Jpy"),
        "pt_ch_3MmlLrLkdIwHu7ix0snN0B15",
    ]
    assert payment_ids(live.get(status="authorized").json()) == ["pt_ch_3Auth"]
    assert payment_ids(live.get(currency="JPY", **{"amount[gte]": "500"}).json()) == ["pt_ch_3Jpy"]
    assert payment_ids(live.get(**{"metadata[stripe.payment_intent]": "pi_3Full"}).json()) == ["pt_ch_3Full"]
    assert payment_ids(test.get(**{"metadata[order]": "84820"}).json()) == ["pt_py_3Kwd"]


@pytest.mark.processes
def test_guide_lists_the_payments_of_a_settlement(client: Client, shop: Organization, tmp_path: Path) -> None:
    [command] = re.findall(r"^curl .*\n.*settlementId.*$", GUIDE, re.MULTILINE)
    [search] = re.findall(r"search for\s`(.+?)`", GUIDE)
    import_page(MOLLIE, tmp_path)

    name, _, value = shlex.split(command)[-1].partition("=")

    api = api_of(client, shop, Mode.LIVE)
    assert payment_ids(api.get(**{name: value}).json()) == ["pt_tr_WDqYK6vllg"]
    assert read_search(search, today=date(2024, 2, 20), zone=ZoneInfo("UTC")).parameters == {name: value}


def test_guide_names_every_reference_and_fact() -> None:
    [section] = re.findall(r"^### References and facts\n(.*?)^### ", GUIDE, re.MULTILINE | re.DOTALL)
    mollie, stripe = map(importlib.import_module, (MOLLIE, STRIPE))
    charge = converted(STRIPE, payment_method_details={"type": "other", "other": {"mandate": "mandate_1"}}, metadata={})

    names = {
        *(*mollie.REFERENCES, *mollie.EMBEDDED, *mollie.FACTS),
        *(*stripe.REFERENCES, *stripe.FACTS, *stripe.OUTCOME),
        *(name.removeprefix("stripe.") for name in charge["metadata"]),
        *charge["details"],
    }
    assert [name for name in sorted(names) if f"`{name}`" not in section] == []


# Members of other forms

REMOVED = object()
FORMS = [REMOVED, None, True, 7, "4242424242424242", [], [1], {"id": "x_1", "object": "x"}]


def variants(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield an object or a list with each of its values in each other form, and what differs."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        for form in FORMS:
            yield f"{name}={form}", changed(value, name, form)
        for difference, variant in variants(inner):
            yield f"{name}.{difference}", changed(value, name, variant)


def changed(value: Any, name: Any, member: Any) -> Any:
    copy = value.copy()
    if member is REMOVED:
        del copy[name]
    else:
        copy[name] = member
    return copy


def problems(name: str, record: Record) -> list[str]:
    """Convert and import a record. Return the lines that say why it is refused; none if it is accepted."""
    pages, members = importlib.import_module("pages"), importlib.import_module("members")
    try:
        validate_record(pages.line_of(record, "7", importlib.import_module(name).convert).encode())
    except members.InvalidMember as error:
        return [str(error)]
    except InvalidRecord as error:
        return [f"{field}: {reason}" for field, reason in error.errors]
    return []


@pytest.mark.parametrize("name", [MOLLIE, STRIPE])
def test_member_of_any_form_is_converted_or_refused_in_one_line(name: str) -> None:
    results = {difference: problems(name, record) for difference, record in variants(full(name))}

    lines = {line for result in results.values() for line in result}
    assert [
        line for line in lines if not re.fullmatch(r"[\w.*\[\]]+: .*(must be|is missing|is not|must have).*", line)
    ] == []
    assert [line for line in lines if "424242" in line] == []
    assert sum(result == [] for result in results.values()) > len(results) / 2


@pytest.mark.parametrize(
    ("name", "required"),
    [
        (MOLLIE, ["id", "mode", "createdAt", "amount", "status", "paidAt"]),
        (STRIPE, ["id", "amount", "captured", "created", "currency", "livemode", "status"]),
    ],
)
def test_members_that_a_record_does_not_need_may_be_missing_or_null(name: str, required: list[str]) -> None:
    record = full(name)

    refused = {member for member in record for form in (None, REMOVED) if problems(name, changed(record, member, form))}

    assert refused == set(required)


@pytest.mark.parametrize("name", [MOLLIE, STRIPE])
@pytest.mark.parametrize(
    "page",
    [
        {},
        [],
        {"data": {"a": 1}},
        {"data": {}, "_embedded": {"payments": {}}},
        {"data": [{"object": "payment_intent"}]},
        {"_embedded": {"payments": [1]}},
        {"_embedded": {"refunds": []}},
        {"error": {"message": "Invalid API Key"}},
        {"data": [{"object": "charge", "amount": float("nan")}]},
    ],
)
def test_file_that_is_not_a_page_ends_the_conversion_in_one_line(
    tmp_path: Path, name: str, page: Any, run_here: Run
) -> None:
    bad = write_page(tmp_path, page)

    status, stdout, stderr = run_here(name, page_of(name), bad)

    assert (stdout, stderr) == ("", "")
    assert re.fullmatch(rf'{re.escape(str(bad))}: is not a page of \w+\'s "List .*"', status)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        (MOLLIE, {"amount": {"value": "4242424242424242x", "currency": "EUR"}}, "amount.value: must be a decimal"),
        (MOLLIE, {"details": "4242424242424242"}, "details: must be an object"),
        (MOLLIE, {"metadata": {"price": float("1e999")}}, "metadata: has a number that is too large"),
        (MOLLIE, {"details": {"price": float("1e999")}}, "has a number that is too large"),
        (MOLLIE, {"amountRefunded": {"value": "1.00", "currency": "USD"}}, "amountRefunded.currency: must be the curr"),
        (STRIPE, {"customer": {"object": "customer"}}, "customer.id: is missing"),
        (STRIPE, {"created": 4242424242424242}, "created: must be a whole number of seconds since 1970"),
        (STRIPE, {"created": 10**40}, "created: must be a whole number of seconds since 1970"),
        (STRIPE, {"payment_method_details": {"type": "4242424242424242", "4242424242424242": 1}}, "payment_method"),
    ],
)
def test_each_bad_record_is_one_line_and_nothing_is_printed(
    name: str, changes: Record, reason: str, tmp_path: Path, run_here: Run
) -> None:
    page = page_with(name, full(name), full(name) | changes, full(name) | {"id": None})
    text = json.dumps(page).replace("Infinity", "1e999")
    bad = tmp_path / "a\x1b[2J"
    bad.write_text(text)

    status, stdout, stderr = run_here(name, page_of(name), bad)

    file = rf"'{tmp_path}/a\\x1b\[2J'"
    assert re.fullmatch(rf"{file}: record 2: {re.escape(reason)}.*\n{file}: record 3: id: is missing\n", stderr)
    assert "4242" not in stderr
    assert stdout == ""
    assert status == "Nothing was converted. Correct these records, or remove them from the files."


def test_deeply_nested_record_is_one_line() -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    members, pages = importlib.import_module("members"), importlib.import_module("pages")

    with pytest.raises(members.InvalidMember, match=r"^is nested too deeply$"):
        pages.line_of(full(MOLLIE) | {"details": {"a": nested}}, "7", importlib.import_module(MOLLIE).convert)


def test_page_is_read_from_stdin(run_here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(page_of(STRIPE).read_bytes())))

    status, stdout, stderr = run_here(STRIPE, "-")

    assert (status, stderr) == (None, "")
    assert len(stdout.splitlines()) == len((DOCUMENTS / f"{STRIPE}.jsonl").read_text().splitlines())


@needs_linux
@pytest.mark.processes
def test_output_that_cannot_be_written_is_one_line() -> None:
    command = shlex.join(map(str, conversion(STRIPE, page_of(STRIPE))))

    process = run_command(["sh", "-c", f"{command} >/dev/full"])

    assert (process.returncode, process.stderr) == (1, "stdout: No space left on device\n")


# References and metadata


@pytest.mark.parametrize(
    ("customer", "expected"),
    [
        ("cus_1", "ct_cus_1"),
        ({"id": "cus_1", "object": "customer"}, "ct_cus_1"),
        ({"id": "cus_1", "object": "customer", "deleted": True}, "ct_cus_1"),
        (None, None),
        ("", None),
    ],
)
def test_customer_of_stripe_may_be_expanded(customer: Any, expected: str | None) -> None:
    assert converted(STRIPE, customer=customer)["customerId"] == expected


@pytest.mark.parametrize("form", [lambda id_: id_, lambda id_: {"id": id_, "object": "other"}])
@pytest.mark.parametrize("name", ["payment_intent", "balance_transaction", "payment_method", "transfer", "dispute"])
def test_reference_of_stripe_may_be_expanded(name: str, form: Callable[[str], Any]) -> None:
    assert converted(STRIPE, **{name: form("x_1")})["metadata"][f"stripe.{name}"] == "x_1"


def test_references_of_lists_are_separated_by_spaces() -> None:
    assert converted(MOLLIE)["metadata"]["mollie.refunds"] == "re_4qqhO89gsT re_vD3Jm32wQt"
    assert converted(STRIPE)["metadata"]["stripe.refunds"] == "re_1 re_2"
    assert "mollie.refunds" not in converted(MOLLIE, _embedded={"refunds": []})["metadata"]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, {}),
        ([], {}),
        ("7", {"metadata": "7"}),
        (["a"], {"metadata": '["a"]'}),
        (False, {"metadata": "false"}),
        (
            {"order": None, "items": 3, "note": "", "tea": {"sort": "Café"}},
            {"items": "3", "note": "", "tea": '{"sort": "Café"}'},
        ),
    ],
)
def test_metadata_of_mollie_may_be_any_json(metadata: Any, expected: dict[str, str]) -> None:
    result = converted(MOLLIE, metadata=metadata)["metadata"]

    assert {name: value for name, value in result.items() if not name.startswith("mollie.")} == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, {"mollie.settlementId": "stl_jDk30akdN"}),
        ({"mollie.settlementId": "stl_jDk30akdN"}, {"mollie.settlementId": "stl_jDk30akdN"}),
        ({"mollie.settlementId": 5}, {"mollie.settlementId": "5", "mollie.settlementId_": "stl_jDk30akdN"}),
        (
            {"mollie.settlementId": "a", "mollie.settlementId_": "b"},
            {"mollie.settlementId": "a", "mollie.settlementId_": "b", "mollie.settlementId__": "stl_jDk30akdN"},
        ),
    ],
)
def test_reference_overwrites_no_metadata(metadata: Any, expected: dict[str, str]) -> None:
    result = converted(MOLLIE, metadata=metadata)["metadata"]

    assert {name: value for name, value in result.items() if "settlement" in name} == expected


# Amounts


@pytest.mark.parametrize(("value", "expected"), [("500", "500.00"), ("75.0", "75.00"), ("75.000", "75.00")])
def test_amount_of_mollie_has_two_decimals(value: str, expected: str) -> None:
    assert converted(MOLLIE, amount=euros(value))["amount"] == euros(expected)


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        (MOLLIE, {"amount": euros("5.124")}, {"value": "5.124", "currency": "EUR"}),
        (STRIPE, {"amount": 5124, "currency": "kwd", "dispute": None}, {"value": "5.124", "currency": "KWD"}),
    ],
)
def test_amount_that_needs_a_third_decimal_is_not_rounded(name: str, changes: Record, expected: Record) -> None:
    assert importlib.import_module(name).convert(full(name) | changes, "7")["amount"] == expected


@pytest.mark.parametrize(
    "value", ["1e2", "1_000.00", " 10.00", "10.00\n", "\u0661\u0660.00", "1,00", "NaN", "", 10, None]
)
def test_amount_of_mollie_that_is_no_decimal_is_refused(value: Any) -> None:
    assert refusal(MOLLIE, amount={"value": value, "currency": "EUR"}).startswith("amount.value: ")


@pytest.mark.parametrize(
    ("currency", "expected"),
    [("usd", "20.00"), ("jpy", "2000.00"), ("ugx", "20.00"), ("isk", "20.00"), ("kwd", "2.00"), ("JPY", "2000.00")],
)
def test_amount_of_stripe_has_the_decimals_of_its_currency(currency: str, expected: str) -> None:
    assert converted(STRIPE, currency=currency)["amount"] == {"value": expected, "currency": currency.upper()}


@pytest.mark.parametrize(
    ("refunded", "charged_back", "refundable", "expected"),
    [
        ("5.95", None, "54.12", "29.12"),  # Mollie allows to refund 25 euros more than the amount
        ("5.95", "10.00", "54.12", "19.12"),
        ("0.00", None, "35.07", "35.07"),
        ("0.00", "35.07", None, "0.00"),
        ("35.07", "35.07", None, "-35.07"),
        ("0.00", None, "20.00", "20.00"),  # the rest was not captured
        (None, None, "35.07", "35.07"),
        (None, None, "60.07", "35.07"),
        (None, None, None, None),
    ],
)
def test_refunds_and_chargebacks_of_mollie_reduce_the_remaining_amount(
    refunded: str | None, charged_back: str | None, refundable: str | None, expected: str | None
) -> None:
    names = ("amountRefunded", "amountChargedBack", "amountRemaining")
    amounts = {
        name: value and euros(value) for name, value in zip(names, (refunded, charged_back, refundable), strict=True)
    }

    assert converted(MOLLIE, **amounts)["amountRemaining"] == (expected and euros(expected))


@pytest.mark.parametrize(
    ("refunded", "captured", "dispute", "expected"),
    [
        (500, 2000, None, "15.00"),
        (500, 2000, {"id": "dp_1", "status": "lost", "amount": 300, "currency": "usd"}, "12.00"),
        (500, 2000, {"id": "dp_1", "status": "won", "amount": 300, "currency": "usd"}, "15.00"),
        (500, 2000, {"id": "dp_1", "status": "under_review", "amount": 300, "currency": "usd"}, "15.00"),
        (500, 2000, {"id": "dp_1", "status": "lost", "amount": 300, "currency": "eur"}, "15.00"),
        (500, 2000, "dp_1", "15.00"),
        (1300, 700, None, "7.00"),  # Stripe refunds the part that is not captured
        (0, 700, None, "7.00"),
        (500, None, None, "15.00"),
        (None, 2000, None, None),
    ],
)
def test_refunds_and_lost_disputes_of_stripe_reduce_the_remaining_amount(
    refunded: int | None, captured: int | None, dispute: Any, expected: str | None
) -> None:
    result = converted(STRIPE, amount_refunded=refunded, amount_captured=captured, dispute=dispute)

    assert result["amountRemaining"] == (expected and {"value": expected, "currency": "USD"})


def test_net_amount_of_stripe_is_that_of_an_expanded_balance_transaction() -> None:
    euro = {"id": "txn_1", "amount": 1788, "net": 1700, "fee": 88, "currency": "eur", "available_on": 1679616000}
    dinar = {"id": "txn_1", "amount": 5120, "net": 4973, "fee": 147, "currency": "kwd"}

    in_euros, in_dinars = (converted(STRIPE, balance_transaction=balance) for balance in (euro, dinar))

    assert in_euros["amountNet"] == euros("17.00")
    assert in_euros["details"]["fee"] == euros("0.88")
    assert in_euros["details"]["availableAt"] == "2023-03-24T00:00:00+00:00"
    assert in_dinars["amountNet"] is None
    assert in_dinars["details"]["amountNet"] == {"value": "4.973", "currency": "KWD"}
    assert converted(STRIPE, balance_transaction="txn_1")["amountNet"] is None


def test_settlement_amount_of_mollie_is_no_net_amount() -> None:
    result = converted(MOLLIE)

    assert "amountNet" not in result
    assert result["details"]["settlementAmount"] == euros("35.07")


# Details


@pytest.mark.parametrize(("is_refunded", "status"), [(False, "authorized"), (True, "canceled")])
def test_charge_of_stripe_that_is_released_is_canceled(is_refunded: bool, status: str) -> None:
    payment = converted(STRIPE, captured=False, refunded=is_refunded)

    assert (payment["status"], payment["paidAt"], payment["amountRemaining"]) == (status, None, None)


def test_failure_is_in_the_details() -> None:
    outcome = {"type": "issuer_declined", "reason": "insufficient_funds", "seller_message": "The bank declined."}
    failed = {"status": "failed", "captured": False, "outcome": outcome}
    stripe = converted(STRIPE, **failed, failure_code="card_declined", failure_message="Your card was declined.")
    reason = {"code": "insufficient_funds", "message": "Not enough money"}
    times = {"paidAt": None, "failedAt": "2024-02-17T10:03:00+00:00"}
    mollie = converted(MOLLIE, status="failed", statusReason=reason, **times)

    expected = {
        "failureReason": "card_declined",
        "failureMessage": "Your card was declined.",
        "outcomeType": "issuer_declined",
        "outcomeReason": "insufficient_funds",
        "sellerMessage": "The bank declined.",
    }
    assert stripe["details"].items() >= expected.items()
    assert mollie["details"]["failedAt"] == times["failedAt"]
    assert mollie["details"]["statusReason"] == reason


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("6787", "XXXX XXXX XXXX 6787"),
        ("411111XXXXXX6787", "XXXX XXXX XXXX 6787"),
        ("************6787", "XXXX XXXX XXXX 6787"),
        ("4242424242424242", "XXXX XXXX XXXX 4242"),
        ("", None),
        (None, None),
    ],
)
def test_card_number_is_masked(number: str | None, expected: str | None) -> None:
    mollie = converted(MOLLIE, details={"cardNumber": number, "cardLabel": "Visa"})
    stripe = converted(STRIPE, payment_method_details={"type": "card", "card": {"last4": number}})

    assert mollie["details"].get("cardNumber") == expected
    assert stripe["details"].get("cardNumber") == expected


@pytest.mark.parametrize("number", ["787", "XXXX", "\u0666\u0667\u0668\u0667", 6787])
def test_card_number_that_does_not_end_in_four_digits_is_refused(number: Any) -> None:
    assert refusal(MOLLIE, details={"cardNumber": number}).startswith("details.cardNumber: must be a text")


@pytest.mark.parametrize("method", ["card", "card_present", "interac_present"])
def test_cards_of_stripe_have_the_same_details(method: str) -> None:
    card = {"brand": "visa", "country": "US", "last4": "4242", "checks": {"cvc_check": "pass"}, "emv_auth_data": "8A02"}
    details = converted(STRIPE, payment_method_details={"type": method, method: card})["details"]

    assert {name: value for name, value in details.items() if name.startswith("card")} == {
        "cardCountryCode": "US",
        "cardHolder": "Jenny Rosen",
        "cardLabel": "visa",
        "cardNumber": "XXXX XXXX XXXX 4242",
    }
    assert "checks" not in details


@pytest.mark.parametrize(
    "details",
    [
        {"bank_code": "37040044", "branch_code": "", "country": "DE", "last4": "3000", "mandate": "mandate_1"},
        {"account_type": "checking", "last4": "6789", "routing_number": "110000000", "mandate": {"id": "mandate_1"}},
        {"bank": "rabobank", "bic": "RABONL2U", "iban_last4": "5264", "generated_sepa_debit": None},
        {"payer_email": "a@shop.example", "transaction_id": "9AL35361CF606152E", "seller_protection": {"status": "x"}},
        {"entity": "12345", "reference": "123456789"},
        {"buyer_id": "2088101122136241", "transaction_id": "2014112611001004680073956707"},
        {},
        None,
    ],
)
def test_details_of_other_methods_of_stripe_are_kept(details: Record | None) -> None:
    result = converted(STRIPE, payment_method_details={"type": "other", "other": details})

    kept = {name: value for name, value in (details or {}).items() if value is not None}
    assert (result["method"], result["details"].items() >= kept.items()) == ("other", True)
    assert result["metadata"].get("stripe.mandate") == ("mandate_1" if "mandate" in kept else None)


@pytest.mark.parametrize(
    "details",
    [
        {"paypalReference": "9AL35361CF606152E", "paypalFee": euros("2.50"), "sellerProtection": "eligible"},
        {"issuer": "edenred", "vouchers": [{"issuer": "edenred", "amount": euros("7.50")}]},
        {"remainderMethod": "creditcard", "remainderDetails": {"cardNumber": "6787", "cardHolder": "T. TEST"}},
        {"terminalId": "term_7MgL4wea46qkRcoTZjWEH", "receipt": {"authorizationCode": "4127", "cardReadMethod": "x"}},
        {"bankAccount": "NL53ABNA0627535577", "transferReference": "RF12-3456-7890-1234"},
        {"transferReference": "SD76-7364-2847-8374", "creditorIdentifier": "NL08ZZZ502057730000", "bankReason": "x"},
        {"cardSecurity": "3dsecure", "cardExpiryDate": "2027-06-30", "failureReason": "insufficient_funds"},
    ],
)
def test_details_of_mollie_are_kept(details: Record) -> None:
    assert converted(MOLLIE, details=details)["details"].items() >= details.items()
