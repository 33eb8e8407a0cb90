"""The guide to importing: the format of a record, its JSON Schema, and the programs that convert other formats."""

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from jsonschema import Draft202012Validator
from pytest_django import Settings

from payments.export import export_payments
from payments.ingest.members import RECORD_MEMBERS
from payments.models import ApiKey, Mode, Organization, Payment
from tests.support.api import Api, payment_ids
from tests.support.commands import output_of, run_command
from tests.support.factories import ApiKeyFactory
from tests.support.lines import record
from tests.support.processes import ROOT

GUIDE = (ROOT / "docs/importing.md").read_text()
DOCUMENTS = ROOT / "tests/documents"


@pytest.fixture
def schema(client: Client, db: None) -> Any:
    response = client.get("/docs/payment.schema.json")
    assert (response.status_code, response["Content-Type"]) == (200, "application/schema+json")
    return response.json()


def import_text(text: str, directory: Path) -> None:
    file = directory / "payments"
    file.write_text(text)
    call_command("import_payments", "--create-organizations", "--verbosity", "0", str(file))


def example(language: str, *, containing: str) -> str:
    """Return the example of the guide in this language that contains a text."""
    examples: list[str] = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    [found] = [text for text in examples if containing in text]
    return found


def test_guide_names_the_required_fields() -> None:
    [names] = re.findall(r"^Required are (.+?)\. If$", GUIDE, re.MULTILINE | re.DOTALL)

    assert re.findall("`(.+?)`", names) == [member.json_name for member in RECORD_MEMBERS if member.is_required]


def test_example_of_csv_is_accepted(db: None, tmp_path: Path) -> None:
    import_text(example("text", containing="metadata.order"), tmp_path)

    payment = Payment.objects.get()
    assert (payment.description, payment.metadata) == ("Tea, green", '{"order":"84820"}')


def test_schema_is_valid_and_has_the_address_of_the_service(client: Client, settings: Settings, schema: Any) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == "http://testserver/docs/payment.schema.json"

    settings.PAYMENTS_PUBLIC_BASE_URL = "https://shop.example"
    assert client.get("/docs/payment.schema.json").json()["$id"] == "https://shop.example/docs/payment.schema.json"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        dict.fromkeys(("method", "details", "amountNet", "redirectUrl", "expiresAt", "customerId")),
        {"createdAt": "2018-03-20T13:28:37+01:00", "paidAt": "2018-03-20T13:28:37.5Z"},
        {"details": {"cardHolder": None, "other": [1, {}]}},
        {"resource": 7, "_links": None},
    ],
)
def test_schema_accepts_what_an_import_accepts(schema: Any, changes: dict[str, Any]) -> None:
    Draft202012Validator(schema).validate(record(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "tr_1"},
        {"id": None},
        {"amount": {"value": "10.0", "currency": "EUR"}},
        {"amount": {"value": "10.00", "currency": "EUR", "fee": "1.00"}},
        {"status": "paid"},
        {"metadata": {"order": 7}},
        {"createdAt": "2018-03-20"},
        {"details": {"cardCountryCode": "nl"}},
        {"profileId": "x"},
    ],
)
def test_schema_refuses_what_an_import_refuses(schema: Any, changes: dict[str, Any]) -> None:
    assert not Draft202012Validator(schema).is_valid(record(**changes))


def conversion(name: str, *pages: Path) -> list[str | Path]:
    """Return the command that converts pages to payments of organization 7."""
    return [sys.executable, ROOT / f"examples/{name}.py", "7", *pages]


def page_of(name: str) -> Path:
    """Return the page that the program of the same name converts."""
    return DOCUMENTS / f"{name}.json"


def assert_export_is_expected(name: str) -> None:
    exported = b"".join(export_payments(Payment.objects.all())).decode()
    assert exported == (DOCUMENTS / f"{name}.jsonl").read_text()


@pytest.fixture
def shop(db: None) -> Organization:
    return Organization.objects.create(id=7, name="Books")


def api_of(client: Client, organization: Organization, mode: Mode) -> Api:
    key: ApiKey = ApiKeyFactory.create(organization=organization, mode=mode)
    return Api(client, key)


@pytest.mark.processes
def test_page_of_mollie_is_converted_imported_listed_and_filtered(
    client: Client, shop: Organization, tmp_path: Path
) -> None:
    import_text(output_of(conversion("mollie_payments", page_of("mollie_payments"))), tmp_path)

    assert_export_is_expected("mollie_payments")
    live, test = (api_of(client, shop, mode) for mode in (Mode.LIVE, Mode.TEST))
    assert payment_ids(live.get().json()) == [
        *("pt_tr_failed1", "pt_tr_open1", "pt_tr_5B8cwPMGnU6qLbRvo7qEZo", "pt_tr_7UhSN1zuXS"),
    ]
    assert payment_ids(live.get(**{"metadata[items]": "3"}).json()) == ["pt_tr_5B8cwPMGnU6qLbRvo7qEZo"]
    assert payment_ids(live.get(customerId="ct_cst_8wmqcHMN4U", status="failed").json()) == ["pt_tr_failed1"]
    assert payment_ids(test.get(method="klarna").json()) == ["pt_tr_auth1"]


@pytest.mark.processes
def test_page_of_stripe_is_converted_imported_listed_and_filtered(
    client: Client, shop: Organization, tmp_path: Path
) -> None:
    import_text(output_of(conversion("stripe_charges", page_of("stripe_charges"))), tmp_path)

    assert_export_is_expected("stripe_charges")
    live, test = (api_of(client, shop, mode) for mode in (Mode.LIVE, Mode.TEST))
    assert payment_ids(live.get().json()) == [
        *("pt_ch_3Pending", "pt_ch_3Auth", "pt_ch_3Failed", "pt_ch_3Jpy", "pt_ch_3MmlLrLkdIwHu7ix0snN0B15"),
    ]
    assert payment_ids(live.get(status="authorized").json()) == ["pt_ch_3Auth"]
    assert payment_ids(live.get(currency="JPY", **{"amount[gte]": "500"}).json()) == ["pt_ch_3Jpy"]
    assert payment_ids(test.get(**{"metadata[order]": "84820"}).json()) == ["pt_py_3Kwd"]


def write_page(directory: Path, page: Any) -> Path:
    file = directory / "page.json"
    file.write_text(json.dumps(page), encoding="utf-8-sig")
    return file


def converted_payment(name: str, page: Path) -> Any:
    return json.loads(output_of(conversion(name, page)))


def mollie_page(**changes: Any) -> Any:
    """Return a page of Mollie with one payment, some of whose members are changed."""
    [payment, *_] = json.loads(page_of("mollie_payments").read_text())["_embedded"]["payments"]
    return {"count": 1, "_embedded": {"payments": [payment | changes]}}


@pytest.mark.processes
@pytest.mark.parametrize(("value", "expected"), [("500", "500.00"), ("75.00", "75.00"), ("5.124", "5.124")])
def test_amount_of_mollie_has_two_decimals_and_is_not_rounded(tmp_path: Path, value: str, expected: str) -> None:
    file = write_page(tmp_path, mollie_page(amount={"value": value, "currency": "JPY"}))

    assert converted_payment("mollie_payments", file)["amount"] == {"value": expected, "currency": "JPY"}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("metadata", "expected"),
    [(None, {}), ("7", {"metadata": "7"}), ({"order": None, "items": 3, "note": ""}, {"items": "3", "note": ""})],
)
def test_metadata_of_mollie_that_is_null_is_absent(tmp_path: Path, metadata: Any, expected: dict[str, str]) -> None:
    file = write_page(tmp_path, mollie_page(metadata=metadata))

    assert converted_payment("mollie_payments", file)["metadata"] == expected


@pytest.mark.processes
@pytest.mark.parametrize(("is_refunded", "status"), [(False, "authorized"), (True, "canceled")])
def test_charge_of_stripe_that_is_released_is_canceled(tmp_path: Path, is_refunded: bool, status: str) -> None:
    page = json.loads(page_of("stripe_charges").read_text())
    page["data"] = [{**page["data"][0], "captured": False, "refunded": is_refunded}]

    payment = converted_payment("stripe_charges", write_page(tmp_path, page))

    assert (payment["status"], payment["paidAt"]) == (status, None)


@pytest.mark.processes
@pytest.mark.parametrize("name", ["mollie_payments", "stripe_charges"])
@pytest.mark.parametrize(
    "page",
    [
        {},
        [],
        {"data": {"a": 1}},
        {"data": [{"object": "payment_intent"}]},
        {"_embedded": {"payments": [1]}},
        {"_embedded": {"refunds": []}},
        {"error": {"message": "Invalid API Key"}},
    ],
)
def test_file_that_is_not_a_page_ends_the_conversion_in_one_line(tmp_path: Path, name: str, page: Any) -> None:
    bad = write_page(tmp_path, page)

    process = run_command(conversion(name, page_of(name), bad))

    assert process.stdout == ""
    assert re.fullmatch(rf'{re.escape(str(bad))}: is not a page of \w+\'s "List .*"\n', process.stderr)
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("mollie_payments", {"_embedded": {"payments": [{"resource": "payment", "id": "tr_4242424242424242"}]}}),
        ("mollie_payments", mollie_page(amount={"value": "4242424242424242x", "currency": "EUR"})),
        ("mollie_payments", mollie_page(details="4242424242424242")),
        ("stripe_charges", {"data": [{"object": "charge", "created": 4242424242424242}]}),
    ],
)
def test_bad_record_ends_the_conversion_in_one_line_and_prints_nothing(
    name: str, page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = write_page(tmp_path, page).rename(tmp_path / "a\x1b[2J")
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.setattr(sys, "argv", [name, "7", str(page_of(name)), str(bad)])

    with pytest.raises(SystemExit) as error:
        runpy.run_path(str(ROOT / f"examples/{name}.py"), run_name="__main__")

    assert capsys.readouterr().out == ""
    assert re.fullmatch(rf"'{tmp_path}/a\\x1b\[2J': record 1 cannot be converted \(\w+\)", str(error.value.code))


@pytest.mark.processes
def test_amount_of_stripe_that_needs_a_third_decimal_is_not_rounded(tmp_path: Path) -> None:
    page = json.loads(page_of("stripe_charges").read_text())
    page["data"] = [{**page["data"][0], "currency": "kwd", "amount": 5124}]

    payment = converted_payment("stripe_charges", write_page(tmp_path, page))

    assert payment["amount"] == {"value": "5.124", "currency": "KWD"}
