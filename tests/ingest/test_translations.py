"""Translations of other systems' words: `import_payments --map MEMBER:FROM=TO`."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from payments.ingest.batches import parse
from payments.ingest.formats.sources import Location, RawRecord
from payments.ingest.stored_rows import StoredRow
from payments.ingest.translations import parse_translations, translate
from payments.ingest.validation import STRICT
from payments.models import Organization, Payment
from tests.ingest.test_variants import VARIANTS
from tests.support.lines import CSV_CELLS, MISSING, RECORD, compact, line

MALFORMED = "must be MEMBER:FROM=TO, such as status:paid=succeeded"


def outcome(text: bytes, *arguments: str) -> str:
    """Return the status of the row of a record, or its errors."""
    options = STRICT._replace(translations=parse_translations(arguments))
    (_, content), *_ = parse(RawRecord(Location("f", 1), text), options)
    return content.status if isinstance(content, StoredRow) else str(content)  # type: ignore[attr-defined]


@pytest.mark.once
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        *(
            ([argument], MALFORMED)
            for argument in ("", "status", "status:", "status:paid", "status:=open", "status:x=")
        ),
        *(([argument], MALFORMED) for argument in ("status=paid:x", ":paid", "status:==open")),
        (["method:a=b"], "MEMBER must be one of mode, status, sequenceType"),
        ([":paid=open"], "MEMBER must be one of mode, status, sequenceType"),
        (["Status:paid=open"], "MEMBER must be one of mode, status, sequenceType"),
        (["resource:a=payment"], "MEMBER must be one of mode, status, sequenceType"),
        (["mode:prod=Live"], "TO must be one of live, test"),
        (["status:a=b=open"], "TO must be one of open, pending, authorized, succeeded, failed, canceled, expired"),
        (["sequenceType:a=live"], "TO must be one of oneoff, first, recurring"),
        (["status:a=open", "status:a=failed"], "an earlier one translates FROM to open"),
    ],
)
def test_invalid_argument_is_named(arguments: list[str], error: str) -> None:
    with pytest.raises(ValueError, match=r"^") as raised:
        parse_translations(arguments)

    assert str(raised.value) == f"{arguments[-1]}: {error}"


@pytest.mark.once
def test_first_colon_and_first_equals_sign_divide() -> None:
    arguments = ["status:a:b=open", "status:a:b=open", "mode:prod=live", "mode: =test"]

    assert parse_translations(arguments) == {"status": {"a:b": "open"}, "mode": {"prod": "live", " ": "test"}}


@pytest.mark.once
@pytest.mark.parametrize("argument", ["status:4242424242424242=x", f"status:{'x' * 1000}=x", "status:a\nb=x"])
def test_message_has_one_short_line_without_card_numbers(argument: str) -> None:
    with pytest.raises(CommandError) as raised:
        call_command("import_payments", "/missing", "--map", argument)

    assert raised.value.returncode == 2
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 250
    assert "4242" not in str(raised.value)


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "arguments", "status"),
    [
        (line(status="paid"), ["status:paid=succeeded"], "succeeded"),
        (line(status="paid"), ["status:Paid=succeeded", "status:paid=open"], "open"),
        (b" " + line(status="paid"), ["status:paid=succeeded"], "succeeded"),
        (line(status="@").replace(b"@", rb"p\u0061id"), ["status:paid=succeeded"], "succeeded"),
        (line(status="paid").replace(b'"status"', rb'"st\u0061tus"'), ["status:paid=open"], "open"),
        (line(status="paid", details={"a": 1}).replace(b":1}", b":%s}" % (b"1" * 99)), ["status:paid=open"], "open"),
        (line(status="open"), ["status:open=pending"], "pending"),
        (line(status="open"), ["status:open=pending", "status:pending=failed"], "pending"),
        (line(status="open"), ["status:open=open"], "open"),
        (line(status="open", metadata={"status": "paid"}), ["status:paid=failed"], "open"),
        (line(status="paid", mode="prod"), ["status:paid=expired", "mode:prod=test"], "expired"),
        (line(status="paid", sequenceType="once"), ["status:paid=open", "sequenceType:once=oneoff"], "open"),
        (line(status="é"), ["status:é=open"], "open"),
    ],
)
def test_words_are_translated_once_before_the_validation(text: bytes, arguments: list[str], status: str) -> None:
    assert outcome(text, *arguments) == status


STATUS = "status: must be one of open, pending, authorized, succeeded, failed, canceled, expired"
HINT = "; --map status:VALUE=TO translates it"


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "error"),
    [
        (line(status="Paid"), STATUS + HINT),
        (line(status="paid "), STATUS + HINT),
        (line(status=["paid"]), STATUS + HINT),
        (line(status=None), "status: must not be null"),
        (line(status=MISSING), "status: is missing"),
        (line(status="paid", paidAt=MISSING), "paidAt: is missing: a payment that succeeded must have it"),
        (line(status="paid", note="x"), "note: is not a field of a record; --ignore-unknown-fields skips it"),
        (line(status="paid")[:-1] + b',"status":"paid"}', f"{STATUS}{HINT}"),
        (line(status="paid")[:-1] + b',"description":"x"}', f"{STATUS}{HINT}; description: occurs more than once"),
        (line(status="paid", details={"a": "@"}).replace(b'"@"', b'1,"a":1'), "details.a: occurs more than once"),
        (line(status="paid", details=7), "details: must be a JSON object"),
        (b'["status"]', "is not an object in JSON"),
        (line(status="paid")[:-1], "is not JSON: Input data was truncated"),
        (line(status="paid")[:-1] + b',"a":' + b"[" * 1_000_000, "is nested too deeply"),
    ],
)
def test_other_errors_are_those_of_a_record_with_the_new_word(text: bytes, error: str) -> None:
    assert outcome(text, "status:paid=succeeded") == error


@pytest.mark.once
def test_translation_of_other_words_changes_no_result() -> None:
    translations = parse_translations(["status:unknown=open", "mode:unknown=live"])
    texts = [compact(RECORD | variant["changes"]) for variant in VARIANTS if "changes" in variant]

    assert len(texts) > 100
    for text in texts:
        raw = RawRecord(Location("f", 1), text)
        assert repr(parse(raw, STRICT._replace(translations=translations))) == repr(parse(raw))


@pytest.mark.once
def test_record_keeps_its_form_so_that_it_takes_the_fast_path() -> None:
    assert translate(line(status="paid"), {"status": {"paid": "open"}}) == line(status="open")


@pytest.mark.django_db
@pytest.mark.parametrize("write", [lambda cells: line(**cells), lambda cells: csv(CSV_CELLS | cells)])
def test_words_in_json_and_csv_are_translated(
    organization: Organization,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    write: Callable[[dict[str, str]], bytes],
) -> None:
    file = tmp_path / "payments"
    file.write_bytes(write({"mode": "prod", "status": "gone", "sequenceType": "once"}))
    options = ["--map", "mode:prod=live", "--map=status:gone=expired", "--map", "sequenceType:once=oneoff"]

    call_command("import_payments", str(file), "--verbosity=0", *options, stderr=sys.stderr)

    assert capfd.readouterr().err == ""
    [payment] = Payment.objects.all()
    assert (payment.mode, payment.status, payment.sequence_type) == ("live", "expired", "oneoff")


def csv(cells: dict[str, str]) -> bytes:
    return f"{','.join(cells)}\n{','.join(cells.values())}\n".encode()
