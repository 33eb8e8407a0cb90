"""`--not-a-card details.MEMBER` takes the numbers of this member as they are, but no security codes."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from payments.ingest.errors import InvalidRecord
from payments.ingest.fast_path import parse_canonical
from payments.ingest.validation import Options, validate_record
from payments.models import Organization, Payment
from tests.support.commands import manage
from tests.support.lines import export_payments, line

pytestmark = pytest.mark.once

NUMBER = "4242424242424242"


def accepted(details: Any, *members: str) -> int:
    """Return how many values were accepted although they look like card numbers."""
    text = line(details=details)
    assert parse_canonical(text) is None
    with pytest.raises(InvalidRecord, match=r"card number"):
        validate_record(text)
    return validate_record(text, Options(not_cards=frozenset(members))).not_cards


@pytest.mark.parametrize(
    ("details", "member"),
    [
        ({"ref": NUMBER}, "details.ref"),
        ({"ref": "4242 4242 4242 4242"}, "details.ref"),
        ({"ref": "4242 4242 42XX 4242"}, "details.ref"),
        ({"ref": int(NUMBER)}, "details.ref"),
        ({"ref": 4.242424242424242e15}, "details.ref"),
        ({"ref": f"order {NUMBER} of A. Baker"}, "details.ref"),
        ({"ref": [NUMBER, NUMBER]}, "details.ref"),
        ({"ref": ["42424242", "42424242"]}, "details.ref"),
        ({"ref": [[4242, 4242], [4242, 4242]]}, "details.ref"),
        ({"a": {"b": NUMBER}}, "details.a.b"),
        ({"a": [{"b": NUMBER}, {"b": NUMBER}]}, "details.a.b"),
        ({"a.b": NUMBER}, "details.a.b"),
        ({"Order № 7": NUMBER}, "details.Order № 7"),
        ({"first": "4242", "second": "4242", "third": "4242", "fourth": "4242"}, "details.second"),
        ({"card": {"cardNumber": NUMBER}}, "details.card.cardNumber"),
        ({"ref": {NUMBER: "x"}}, "details.ref"),
    ],
)
def test_number_of_the_member_is_accepted(details: Any, member: str) -> None:
    assert accepted(details, member) == 1


@pytest.mark.parametrize("members", [["details.a", "details.b"], ["details.b", "details.a", "details.c"]])
def test_several_members_can_be_named(members: list[str]) -> None:
    assert accepted({"a": NUMBER, "b": [NUMBER]}, *members) == 2


@pytest.mark.parametrize(
    ("details", "member"),
    [
        ({"ref": "x", "note": NUMBER}, "details.ref"),
        ({"ref": NUMBER, "note": NUMBER}, "details.ref"),
        ({"ref": {"inner": NUMBER}}, "details.ref"),
        ({NUMBER: "x"}, f"details.{NUMBER}"),
        ({"a": {"ref": NUMBER}}, "details.ref"),
        ({"Ref": NUMBER}, "details.ref"),
        ({"ref": NUMBER, "a": "4242", "b": "4242", "c": "4242", "d": "4242"}, "details.ref"),
        ({"cardNumber": NUMBER}, "details.cardNumber"),
        ({"cardNumber": "4242 4242 42XX 4242"}, "details.cardNumber"),
    ],
)
def test_number_elsewhere_is_refused(details: Any, member: str) -> None:
    with pytest.raises(InvalidRecord, match=r"card number must be masked|cardNumber: must be masked") as error:
        validate_record(line(details=details), Options(not_cards=frozenset([member])))

    assert "42424242" not in str(error.value).replace(" ", "").replace("424242XXXXXX4242", "")


@pytest.mark.parametrize(
    "details",
    [
        {"ref": "CVV: 123"},
        {"ref": f"{NUMBER} CVV: 123"},
        {"ref": ["cvv", "123", NUMBER]},
        {"name": "cvv", "value": "123", "ref": NUMBER},
        {"ref": {"cvv": "123"}},
        {"ref": NUMBER, "cc_cvv": "123"},
        {"ref": NUMBER, "cvv": NUMBER},
        {"ref": f"%B{NUMBER}^BAKER/A^25121010000000000000?"},
        {"ref": f";{NUMBER}=25121010000000000000?"},
        {"ref": f"{NUMBER}|12|2026|123"},
        {"ref": f"{NUMBER};12/26;1234"},
    ],
)
def test_security_code_is_refused(details: Any) -> None:
    members = frozenset(["details.ref", "details.cvv", "details.value", "details.cc_cvv", "details.ref.cvv"])

    with pytest.raises(InvalidRecord, match=r"security code, PIN or track"):
        validate_record(line(details=details), Options(not_cards=members))


def test_numbers_outside_of_the_details_are_refused() -> None:
    text = line(metadata={"ref": NUMBER}, description=NUMBER)

    with pytest.raises(InvalidRecord) as error:
        validate_record(text, Options(not_cards=frozenset(["details.ref", "metadata.ref", "description"])))

    assert str(error.value) == (
        "description: a card number must be masked (PCI DSS 3.4); --trust-texts accepts other numbers; "
        "metadata.ref: a card number must be masked (PCI DSS 3.4); --trust-texts accepts other numbers"
    )


@pytest.mark.django_db
def test_import_counts_the_accepted_values(
    organization: Organization, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    records = [line(id=f"pt_{number}", details={"ref": text}) for number, text in enumerate((NUMBER, "84820", NUMBER))]
    file = tmp_path / "payments.jsonl"
    file.write_bytes(b"\n".join(records))

    with pytest.raises(CommandError):
        call_command("import_payments", str(file))
    assert (
        "payments.jsonl:1: details.ref: a card number must be masked (PCI DSS 3.4); --not-a-card "
        in capfd.readouterr().err
    )

    call_command("import_payments", str(file), "--not-a-card", "details.ref", "--not-a-card", "details.other")
    assert capfd.readouterr().err.splitlines()[0] == (
        "3 records read: 3 payments created, 0 changed, 0 unchanged, 0 refused. "
        "2 values look like card numbers, and --not-a-card accepted them."
    )
    assert sorted(export_payments(Payment.objects.all())) == [record + b"\n" for record in records]


@pytest.mark.parametrize(
    "argument", ["ref", "details", "details.", "Details.ref", "metadata.ref", "details.cardNumber", NUMBER, ""]
)
def test_invalid_argument_ends_before_anything_is_read(argument: str) -> None:
    done = manage("import_payments", "missing.jsonl", "--not-a-card", argument, url="sqlite:///:memory:")

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "manage.py import_payments: error: argument --not-a-card: must be details.MEMBER, and not details.cardNumber"
    )
