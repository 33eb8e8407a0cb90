"""An import: all or nothing, idempotent, and never across organizations or modes."""

import errno
import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from io import BufferedReader, BytesIO
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from moneyed import Money

from payments.export import export_payments
from payments.ingest import ImportResult, Source, batches, import_payments, imports
from payments.ingest.columns import COLUMNS, row
from payments.ingest.reading import CHUNK_BYTES
from payments.ingest.validation import checked
from payments.ingest.writing import ID, added, write
from payments.models import Organization, Payment
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.lines import MISSING, compact, line, record, source

pytestmark = pytest.mark.django_db

CREATED_AT = datetime(2018, 3, 20, 13, 28, 37, 123_000, tzinfo=UTC)


class Refusals(list[str]):
    """Collects what an import reports."""

    def __call__(self, place: object, error: object) -> None:
        self.append(f"{place}: {error}")


def load(*contents: bytes, **options: bool) -> tuple[ImportResult, Refusals]:
    refusals = Refusals()
    sources = [source(content, f"f{number}") for number, content in enumerate(contents, start=1)]
    return import_payments(sources, on_refused=refusals, **options), refusals


def lines(*texts: bytes) -> bytes:
    return b"".join(text + b"\n" for text in texts)


def exported() -> bytes:
    return b"".join(export_payments(Payment.objects.all()))


def test_an_imported_record_is_a_payment(organization: Organization) -> None:
    imported, refusals = load(line())

    payment = Payment.objects.get()
    assert (imported, refusals) == (ImportResult(read=1, refused=0, changed=1), [])
    assert payment.amount == Money("10.00", "EUR")
    assert payment.amount_net == Money("9.55", "EUR")
    assert payment.created_at == CREATED_AT
    assert payment.metadata == '{"zeta":"1","alpha":"2"}'
    assert payment.organization == organization


def test_every_column_is_written() -> None:
    assert sorted(COLUMNS) == sorted(str(field.column) for field in Payment._meta.concrete_fields)  # noqa: SLF001


@pytest.mark.parametrize(
    "text",
    [
        line(),
        line(**dict.fromkeys(("amountNet", "amountRemaining", "method", "redirectUrl", "webhookUrl"), MISSING)),
        line(status="open", **dict.fromkeys(("details", "expiresAt", "paidAt", "customerId"), MISSING)),
        line(amount={"value": "9999999999999.99", "currency": "EUR"}, amountNet={"value": "-0.01", "currency": "USD"}),
        line(amount={"value": "1000.00", "currency": "JPY"}, createdAt="0999-12-31T23:59:59.000"),
        line(createdAt="9999-12-31T23:59:59.999", metadata={"b": "1", "a": "2", "": ""}),
        line(description='\u2028 \U0001f600 \\ " / \t\r\n\b\f\x7f'),
        line(details={}),
        line(details={"z": [1, None, {"y": True}], "a": {}, "ü": "é"}),
        line(details={"number": "@"}).replace(b'"@"', b"[1.10,1E5,-0.0,12345678901234567890,1e-7]"),
        line(details={"text": "@"}).replace(b"@", rb"\u00e9\/"),
    ],
)
def test_what_was_imported_comes_out_the_same_to_the_byte(organization: Organization, text: bytes) -> None:
    load(text.replace(rb"\u007f", b"\x7f"))

    first = exported()
    Payment.objects.update(description="")
    load(first)

    assert first == text + b"\n"
    assert exported() == first


def test_spaces_between_the_parts_of_a_record_are_dropped(organization: Organization) -> None:
    load(b' { "details" : { "a" : [ 1 , "b  c" ] } ,' + line(details=MISSING)[1:])

    assert b'"details":{"a":[1,"b  c"]}' in exported()


def test_importing_again_changes_nothing(organization: Organization) -> None:
    content = lines(*(line(id=f"pt_{number}") for number in range(30)))
    load(content)

    imported, _ = load(content)

    assert imported == ImportResult(read=30, refused=0, changed=0)


def test_a_payment_that_is_there_is_updated(organization: Organization) -> None:
    load(lines(line(id="pt_1", status="open", paidAt=MISSING), line(id="pt_2")))

    imported, _ = load(lines(line(id="pt_1", customerId=MISSING), line(id="pt_2")))

    assert imported.changed == 1
    assert exported() == lines(line(id="pt_2"), line(id="pt_1", customerId=MISSING))


def test_of_two_records_with_one_id_the_later_holds(organization: Organization) -> None:
    load(lines(line(description="earlier"), line(description="later")))

    assert Payment.objects.get().description == "later"


def test_a_payment_of_another_organization_is_refused_and_left_alone(organization: Organization) -> None:
    theirs = PaymentFactory.create(id="pt_1", organization=OrganizationFactory.create(id=2), description="theirs")

    imported, refusals = load(lines(line(id="pt_0"), line(id="pt_1")))

    theirs.refresh_from_db()
    assert refusals == ["f1:2: organizationId: this payment belongs to another organization"]
    assert imported == ImportResult(read=2, refused=1, changed=0)
    assert theirs.description == "theirs"
    assert Payment.objects.count() == 1


def test_all_that_is_wrong_is_named_at_once(organization: Organization) -> None:
    PaymentFactory.create(id="pt_1", organization=OrganizationFactory.create(id=2))

    _, refusals = load(lines(b"nonsense", line(id="pt_1"), line(id="pt_2")))

    assert [refusal.partition(": ")[0] for refusal in refusals] == ["f1:1", "f1:2"]


def test_within_one_file_too_a_payment_belongs_to_one_organization(organization: Organization) -> None:
    OrganizationFactory.create(id=2)

    _, refusals = load(lines(line(), line(organizationId="2")), keep_going=True)

    assert refusals == ["f1:2: organizationId: this payment belongs to another organization"]
    assert Payment.objects.get().organization == organization


def test_of_records_with_one_id_each_is_written_or_named(organization: Organization) -> None:
    PaymentFactory.create(id="pt_2", organization=organization, mode="live", created_at=CREATED_AT)
    content = lines(
        line(id="pt_1", description="1"),
        line(id="pt_2", mode="test"),
        line(id="pt_1", description="2"),
        line(id="pt_2", description="right"),
        line(id="pt_1", createdAt="2019-01-01T00:00:00.000"),
        line(id="pt_1", description="3"),
    )

    _, refusals = load(content, keep_going=True)

    assert sorted(refusals) == [
        "f1:2: mode: this payment is of the other mode",
        "f1:5: createdAt: this payment was created at another time, which never changes",
    ]
    assert dict(Payment.objects.values_list("id", "description")) == {"pt_1": "3", "pt_2": "right"}


def test_new_and_changed_payments_may_come_together(organization: Organization) -> None:
    load(lines(line(id="pt_2"), line(id="pt_4")))

    imported, _ = load(lines(*(line(id=f"pt_{number}", description="now") for number in range(1, 5))))

    assert imported.changed == 4
    assert set(Payment.objects.values_list("id", "description")) == {(f"pt_{number}", "now") for number in range(1, 5)}


def test_where_somebody_else_was_quicker_nothing_is_lost(organization: Organization) -> None:
    """Between the look whether payments are new and their insertion, another import may have come."""
    load(line(id="pt_2", description="theirs"))
    rows = [row(checked(line(id=f"pt_{number}", description="ours"))) for number in (1, 2)]

    assert not added(rows)
    assert write(rows, key=ID) == 2

    assert set(Payment.objects.values_list("id", "description")) == {("pt_1", "ours"), ("pt_2", "ours")}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mode": "test"}, "mode: this payment is of the other mode"),
        (
            {"createdAt": "2018-03-20T13:28:37.124"},
            "createdAt: this payment was created at another time, which never changes",
        ),
    ],
)
@pytest.mark.parametrize("keep_going", [False, True])
def test_what_fixes_a_payments_place_never_changes(
    organization: Organization, changes: dict[str, str], reason: str, keep_going: bool
) -> None:
    load(line())

    _, refusals = load(line(description="changed", **changes), keep_going=keep_going)

    assert refusals == [f"f1:1: {reason}"]
    assert exported() == lines(line())


def test_one_bad_record_in_any_file_stops_all(organization: Organization) -> None:
    imported, refusals = load(
        lines(line(id="pt_1"), line(id="pt_2")),
        lines(line(id="pt_3"), line(id="pt_4", mode="prod"), b"nonsense", line(id="pt_5")),
    )

    assert refusals == [
        "f2:2: mode: must be one of live, test",
        "f2:3: is not JSON: JSON is malformed: invalid character (byte 4)",
    ]
    assert imported == ImportResult(read=6, refused=2, changed=0)
    assert not Payment.objects.exists()


def test_a_bad_record_behind_written_ones_undoes_them(
    organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_RECORDS", 2)

    imported, _ = load(lines(*(line(id=f"pt_{number}") for number in range(5)), b"{"))

    assert imported == ImportResult(read=6, refused=1, changed=0)
    assert not Payment.objects.exists()


def test_keep_going_writes_the_good_ones(organization: Organization) -> None:
    content = compact([record(id="pt_1"), record(id="pt_2", mode="prod"), record(id="pt_3")])

    imported, refusals = load(content, compact([record(id="pt_4")])[:-1], lines(line(id="pt_5")), keep_going=True)

    assert refusals == [
        "f1:1: record 2: mode: must be one of live, test",
        "f2:1: the file ends before its array does",
    ]
    assert imported == ImportResult(read=5, refused=2, changed=4)
    assert sorted(Payment.objects.values_list("id", flat=True)) == ["pt_1", "pt_3", "pt_4", "pt_5"]


class Failing(BytesIO):
    """A stream that cannot be read to its end."""

    def readinto(self, buffer: Any) -> int:
        if not (count := super().readinto(buffer)):
            raise OSError(errno.EIO, "Input/output error")
        return count


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_source_that_cannot_be_read_to_its_end_undoes_what_was_written(
    organization: Organization, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(batches, "BATCH_RECORDS", 1)
    stream = Failing(pack(lines(line(id="pt_1"), line(id="pt_2")))[:-8])
    refusals = Refusals()

    imported = import_payments([Source("f", BufferedReader(stream))], on_refused=refusals)

    assert [refusal.partition(": ")[2] for refusal in refusals] == ["cannot be read any further: Input/output error"]
    assert imported.changed == 0
    assert not Payment.objects.exists()


class Impatient(BytesIO):
    """A stream at whose end somebody loses patience, long after what it holds was read."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content + b"\n" * CHUNK_BYTES)

    def readinto(self, buffer: Any) -> int:
        if not (count := super().readinto(buffer)):
            raise KeyboardInterrupt
        return count


def test_an_interrupted_import_leaves_nothing_behind(
    organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_RECORDS", 1)
    stream = Impatient(lines(*(line(id=f"pt_{number}") for number in range(3))))

    with pytest.raises(KeyboardInterrupt):
        import_payments([Source("stdin", BufferedReader(stream))], on_refused=Refusals())

    assert not Payment.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_import_that_waits_for_somebody_else_can_be_interrupted(
    organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_RECORDS", 1)
    stream = Impatient(lines(line()))

    with psycopg.connect(connection.connection.info.dsn, password=connection.connection.info.password) as other:
        other.execute("LOCK TABLE payments_payment IN SHARE MODE")
        with pytest.raises(KeyboardInterrupt):
            import_payments([Source("stdin", BufferedReader(stream))], on_refused=Refusals())

    assert not Payment.objects.exists()


def test_a_batch_is_bounded_by_its_bytes_too(organization: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 1)

    imported, _ = load(lines(line(id="pt_1"), line(id="pt_2"), line(id="pt_1", description="later")))

    assert imported == ImportResult(read=3, refused=0, changed=3)


@pytest.mark.parametrize("text", [b"nonsense", line(organizationId="404")])
@pytest.mark.parametrize("batch_records", [batches.BATCH_RECORDS, imports.REFUSED_MAX, 7, 1])
def test_a_file_of_another_kind_is_not_read_to_its_end(
    organization: Organization, monkeypatch: pytest.MonkeyPatch, batch_records: int, text: bytes
) -> None:
    monkeypatch.setattr(batches, "BATCH_RECORDS", batch_records)

    imported, refusals = load(lines(line(), *[text] * 1000))

    assert len(refusals) == imports.REFUSED_MAX
    assert imported == ImportResult(read=imports.REFUSED_MAX + 1, refused=imports.REFUSED_MAX, changed=0)


@pytest.mark.parametrize("count", [1, 1000])
def test_of_payments_that_are_stored_elsewhere_too_no_more_are_named(organization: Organization, count: int) -> None:
    load(lines(*(line(id=f"pt_{number}") for number in range(count))))
    elsewhere = lines(*(line(id=f"pt_{number}", mode="test") for number in range(count)))

    _, some = load(elsewhere)
    _, every = load(elsewhere, keep_going=True)

    assert len(some) == min(count, imports.REFUSED_MAX)
    assert len(every) == count


def test_what_is_wrong_is_named_in_the_order_of_the_file(organization: Organization) -> None:
    unknown = [line(id=f"pt_{number}", organizationId="404") for number in (3, 2, 1)]

    _, refusals = load(lines(unknown[0], b"nonsense", *unknown[1:], line()))

    assert [refusal.split(":")[1] for refusal in refusals] == ["1", "2", "3", "4"]


def test_an_organization_that_does_not_exist_is_refused() -> None:
    _, refusals = load(line())

    assert refusals == ["f1:1: organizationId: there is no such organization"]


@pytest.mark.parametrize("organization_id", ["1", str(2**63 - 1)])
def test_organizations_are_made_where_that_is_asked_for(organization_id: str) -> None:
    load(lines(line(id="pt_1", organizationId=organization_id), line(id="pt_2")), create_organizations=True)

    assert Organization.objects.filter(id=organization_id).exists()
    assert Payment.objects.count() == 2


def test_a_refused_import_leaves_no_organization_behind() -> None:
    load(lines(line(), b"nonsense"), create_organizations=True)

    assert not Organization.objects.exists()


def test_a_batch_costs_the_same_number_of_statements_whatever_it_holds(organization: Organization) -> None:
    counts = []
    for size in (1, 500):
        with CaptureQueriesContext(connection) as queries:
            load(lines(*(line(id=f"pt_{size}x{number}") for number in range(size))))
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_amounts_are_stored_exactly(organization: Organization) -> None:
    values = ["0.10", "0.29", "1.01", "9999999999999.99", "8888888888888.88", "-9999999999999.99"]

    load(
        lines(
            *(
                line(id=f"pt_{number}", amount={"value": value, "currency": "EUR"})
                for number, value in enumerate(values)
            )
        )
    )

    assert [payment.amount.amount for payment in Payment.objects.order_by("id")] == [Decimal(value) for value in values]
