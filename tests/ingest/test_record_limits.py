"""The texts, the numbers and the size of a record are limited, in bytes, whichever path reads the record."""

import json
from typing import Any

import pytest

from payments.ingest import import_payments
from payments.ingest.batches import parse
from payments.ingest.errors import InvalidRecord
from payments.ingest.formats.sources import Location, RawRecord
from payments.ingest.validation import Options
from payments.models import RECORD_BYTES_MAX, TEXT_BYTES_MAX, Organization, Payment
from payments.record import NAME_BYTES_MAX, NUMBER_CHARACTERS_MAX
from tests.support.lines import CSV_CELLS, compact, export_payments, line, source, store
from tests.support.sql import fetch_value

pytestmark = pytest.mark.once

TOO_LONG = f"is longer than {TEXT_BYTES_MAX} bytes in UTF-8"
NAME_TOO_LONG = f"has a name of more than {NAME_BYTES_MAX} bytes in UTF-8"
NUMBER_TOO_LONG = f"is a number of more than {NUMBER_CHARACTERS_MAX} characters"
RECORD_TOO_LONG = f"is longer than {RECORD_BYTES_MAX} bytes in the form of an export"

# Characters of one to four bytes. JSON escapes the last three.
CHARACTERS = ["a", "é", "€", "😀", '"', "\\", "\n"]


def outcome(text: bytes, *, ignores_unknown_fields: bool = False) -> str | None:
    """Return the errors of a record as a message has them; None if it is accepted."""
    options = Options(ignores_unknown_fields=ignores_unknown_fields)
    (_, content), *_ = parse(RawRecord(Location("f", 1), text), options)
    return str(content) if isinstance(content, InvalidRecord) else None


def text_of(bytes_: int, character: str = "a") -> str:
    """Return a text of this character that has so many bytes."""
    count, rest = divmod(bytes_, len(character.encode()))
    return "a" * rest + character * count


def variants(text: bytes) -> list[bytes]:
    """Return a record in canonical form, in other forms, and with escapes in place of characters beyond ASCII."""
    members = json.loads(text)
    return [
        text,
        json.dumps(members, ensure_ascii=False).encode(),
        json.dumps(members, separators=(",", ":")).encode(),
        json.dumps(dict(reversed(members.items()))).encode(),
    ]


@pytest.mark.parametrize("character", CHARACTERS)
@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("description", lambda text: {"description": text}),
        ("metadata.note", lambda text: {"metadata": {"note": text}}),
        ("details.note", lambda text: {"details": {"note": text}}),
        ("details.cardHolder", lambda text: {"details": {"cardHolder": text}}),
        ("details.a.b", lambda text: {"details": {"a": [{"b": [1, text]}]}}),
    ],
)
def test_text_has_at_most_16384_bytes(field: str, changes: Any, character: str) -> None:
    for longest in variants(line(**changes(text_of(16_384, character)))):
        assert outcome(longest) is None
    for too_long in variants(line(**changes(text_of(16_385, character)))):
        assert outcome(too_long) == f"{field}: {TOO_LONG}"


@pytest.mark.parametrize("character", CHARACTERS)
@pytest.mark.parametrize("member", ["metadata", "details"])
@pytest.mark.parametrize("rest", [{}, {"b": "c"}])
def test_name_has_at_most_1024_bytes(member: str, character: str, rest: dict[str, str]) -> None:
    for longest in variants(line(**{member: {text_of(1024, character): "x", **rest}})):
        assert outcome(longest) is None
    for too_long in variants(line(**{member: {text_of(1025, character): "x", **rest}})):
        assert (outcome(too_long) or "").endswith(f"…: {NAME_TOO_LONG}")


def test_name_of_a_nested_object_is_limited_too() -> None:
    assert outcome(line(details={"a": [{"n" * 1025: 1}]})) == f"details.a.{'n' * 70}…: {NAME_TOO_LONG}"


@pytest.mark.parametrize("number", ["1" * 100, "-0." + "1" * 97, "1e-" + "0" * 97, "1." + "0" * 98])
def test_number_has_at_most_100_characters(number: str) -> None:
    longest, too_long = (line(details={"n": ["@"]}).replace(b'"@"', text.encode()) for text in (number, number + "0"))

    assert outcome(longest) is None
    assert outcome(too_long) == f"details.n: {NUMBER_TOO_LONG}"


def of_size(size: int, **changes: Any) -> bytes:
    """Return a record of so many bytes, whose texts are within their limits."""
    metadata = {f"{number}": "x" * 16_000 for number in range(4)}
    rest = size - len(line(metadata=metadata, description="", **changes))
    return line(metadata=metadata, description="x" * rest, **changes)


def test_record_has_at_most_65536_bytes_in_the_form_of_an_export() -> None:
    longest, too_long = (json.loads(of_size(size)) for size in (65_536, 65_537))
    links = {name: {"href": "h" * 200, "type": "x"} for name in ("self", "dashboard", "documentation")}

    for text in [*variants(compact(longest)), compact(longest | {"_links": links})]:
        assert outcome(text) is None
    del too_long["resource"]  # the export adds it
    for text in variants(compact(too_long)):
        assert outcome(text) == RECORD_TOO_LONG


@pytest.mark.django_db
def test_size_of_a_record_is_that_of_its_line_in_an_export(organization: Organization) -> None:
    """The import adds `resource` and digits of times, and removes spaces and escapes."""
    text = of_size(65_536, createdAt="2018-03-20T13:28:37.000", details={"note": 'é"'})

    store([text.replace(b"37.000", b"37").replace(b'"resource":"payment",', b"").replace(b'":', b'" : ')])

    [exported] = export_payments(Payment.objects.all())
    assert exported == text + b"\n"


def test_all_long_texts_of_a_record_are_reported_together() -> None:
    long = "x" * 16_385
    text = line(mode="prod", description=long, metadata={"a": long, "b": "c"}, details={"d": [long]}, customerId=long)

    assert outcome(text) == (
        "mode: must be one of live, test; --map mode:VALUE=TO translates it; "
        "customerId: must be `ct_` and 1 to 61 letters, digits, `_` or `-`; "
        f"description: {TOO_LONG}; metadata.a: {TOO_LONG}; details.d: {TOO_LONG}"
    )


def test_texts_that_are_not_stored_have_no_limit() -> None:
    text = line(profile={"a" * 2000: "x" * 100_000}, _links={"self": "x" * 100_000}, resource="x" * 100_000)

    assert outcome(text, ignores_unknown_fields=True) is None


def test_long_url_is_refused_by_its_own_rule() -> None:
    assert "of at most 2048 characters" in (outcome(line(webhookUrl="https://" + "a" * 20_000)) or "")


@pytest.mark.django_db
def test_cell_of_a_csv_file_has_the_limit_of_a_text(organization: Organization) -> None:
    errors: list[str] = []
    cells = {**CSV_CELLS, "description": "é" * 8193, "metadata." + "n" * 1025: "x"}
    content = "\n".join([",".join(cells), ",".join(cells.values())]).encode()

    import_payments([source(content, "f")], on_refused=lambda _, error: errors.append(str(error)))

    [message] = errors
    assert message.startswith(f"description: {TOO_LONG}; metadata.nnn")
    assert message.endswith(NAME_TOO_LONG)
    assert fetch_value("SELECT count(*) FROM payments_payment") == 0
