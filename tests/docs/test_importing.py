"""The guide to importing: the format of a record, and its JSON Schema."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from jsonschema_rs import Draft202012Validator
from pytest_django import Settings

from payments.ingest.members import RECORD_MEMBERS
from payments.models import Payment
from tests.support.lines import record
from tests.support.processes import ROOT

GUIDE = (ROOT / "docs/importing.md").read_text()


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
    Draft202012Validator(schema)  # refuses an invalid schema
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
