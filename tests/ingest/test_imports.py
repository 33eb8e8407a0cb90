"""Imports are atomic and idempotent, and no payment moves to another organization or mode."""

import errno
import gzip
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from io import BufferedReader, BytesIO
from threading import Event
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from payments.conf import conf
from payments.ingest import ImportResult, Source, import_payments, imports
from payments.ingest.change_log import ChangeLog
from payments.ingest.formats.sources import CHUNK_BYTES
from payments.ingest.staging import TABLE_COLUMNS, Target
from payments.ingest.stored_rows import stored_row
from payments.ingest.validation import STRICT, Options, validate_record
from payments.ingest.writing import insert_all, write_rows
from payments.models import Organization, Payment
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.lines import MISSING, compact, export_payments, line, record, source
from tests.support.sql import execute
from tests.support.threads import in_thread, wait_until_blocked
from tests.support.waiting import SECONDS_MAX

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

CREATED_AT = datetime(2018, 3, 20, 13, 28, 37, 123_000, tzinfo=UTC)


class Refusals(list[str]):
    """Collects the errors that an import reports."""

    def __call__(self, location: object, error: object) -> None:
        self.append(f"{location}: {error}")


def load(
    *contents: bytes, options: Options = STRICT, keep_going: bool = False, create_organizations: bool = False
) -> tuple[ImportResult, Refusals]:
    refusals = Refusals()
    sources = [source(content, f"f{number}") for number, content in enumerate(contents, start=1)]
    result = import_payments(
        sources,
        on_refused=refusals,
        keep_going=keep_going,
        create_organizations=create_organizations,
        options=options,
    )
    return result, refusals


def lines(*texts: bytes) -> bytes:
    return b"".join(text + b"\n" for text in texts)


def exported() -> bytes:
    return b"".join(export_payments(Payment.objects.all()))


def test_imported_record_is_stored_as_payment(organization: Organization) -> None:
    result, refusals = load(line())

    payment = Payment.objects.get()
    assert (result, refusals) == (ImportResult(read=1, created=1), [])
    assert (payment.amount, payment.amount_currency) == (Decimal("10.00"), "EUR")
    assert (payment.amount_net, payment.amount_net_currency) == (Decimal("9.55"), "EUR")
    assert payment.created_at == CREATED_AT
    assert payment.metadata == '{"zeta":"1","alpha":"2"}'
    assert payment.organization == organization


def test_every_column_is_written() -> None:
    assert sorted(TABLE_COLUMNS) == sorted(str(field.column) for field in Payment._meta.concrete_fields)  # noqa: SLF001


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
def test_export_returns_the_imported_bytes(organization: Organization, text: bytes) -> None:
    load(text.replace(rb"\u007f", b"\x7f"))

    export = exported()
    Payment.objects.update(description="")
    load(export)

    assert export == text + b"\n"
    assert exported() == export


def test_whitespace_in_details_is_removed(organization: Organization) -> None:
    load(b' { "details" : { "a" : [ 1 , "b  c" ] } ,' + line(details=MISSING)[1:])

    assert b'"details":{"a":[1,"b  c"]}' in exported()


def test_repeated_import_changes_nothing(organization: Organization) -> None:
    content = lines(*(line(id=f"pt_{number}") for number in range(30)))
    load(content)

    result, _ = load(content)

    assert result == ImportResult(read=30, unchanged=30)


def test_existing_payment_is_updated(organization: Organization) -> None:
    load(lines(line(id="pt_1", status="open", paidAt=MISSING), line(id="pt_2")))

    result, _ = load(lines(line(id="pt_1", customerId=MISSING), line(id="pt_2")))

    assert result.written == 1
    assert exported() == lines(line(id="pt_2"), line(id="pt_1", customerId=MISSING))


def test_last_record_with_an_id_wins(organization: Organization) -> None:
    load(lines(line(description="earlier"), line(description="later")))

    assert Payment.objects.get().description == "later"


@pytest.mark.only("sqlite", "postgresql")
def test_payment_of_another_organization_is_refused_and_unchanged(organization: Organization) -> None:
    payment = PaymentFactory.create(id="pt_1", organization=OrganizationFactory.create(id=2), description="theirs")

    result, refusals = load(lines(line(id="pt_0"), line(id="pt_1")))

    payment.refresh_from_db()
    assert refusals == ["f1:2: organizationId: this payment belongs to another organization"]
    assert result == ImportResult(read=2, refused=1)
    assert payment.description == "theirs"
    assert Payment.objects.count() == 1


@pytest.mark.only("sqlite", "postgresql")
def test_all_kinds_of_errors_are_reported_in_one_run(organization: Organization) -> None:
    PaymentFactory.create(id="pt_1", organization=OrganizationFactory.create(id=2))

    _, refusals = load(lines(b"{nonsense", line(id="pt_1"), line(id="pt_2")))

    assert [refusal.partition(": ")[0] for refusal in refusals] == ["f1:1", "f1:2"]


@pytest.mark.only("sqlite", "postgresql")
def test_payment_cannot_change_its_organization_within_a_file(organization: Organization) -> None:
    OrganizationFactory.create(id=2)

    _, refusals = load(lines(line(), line(organizationId="2")), keep_going=True)

    assert refusals == ["f1:2: organizationId: this payment belongs to another organization"]
    assert Payment.objects.get().organization == organization


def test_records_with_the_same_id_are_written_or_refused_singly(organization: Organization) -> None:
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
        "f1:2: mode: this payment exists in the other mode",
        "f1:5: createdAt: must not change: this payment was created at another time",
    ]
    assert dict(Payment.objects.values_list("id", "description")) == {"pt_1": "3", "pt_2": "right"}


def test_new_and_changed_payments_in_one_import(organization: Organization) -> None:
    load(lines(line(id="pt_2"), line(id="pt_4")))

    result, _ = load(lines(*(line(id=f"pt_{number}", description="now") for number in range(1, 5))))

    assert result.written == 4
    assert set(Payment.objects.values_list("id", "description")) == {(f"pt_{number}", "now") for number in range(1, 5)}


@pytest.mark.only("sqlite", "postgresql")
def test_payment_inserted_by_a_concurrent_import_is_updated(organization: Organization) -> None:
    """Another import may insert a payment after this one has checked that it is new."""
    load(line(id="pt_2", description="theirs"))
    rows = [stored_row(validate_record(line(id=f"pt_{number}", description="ours")).record) for number in (1, 2)]

    assert not insert_all(rows, [1, 1])
    result = ImportResult()
    assert write_rows(rows, target=Target(), log=ChangeLog(), result=result) == {}

    assert (result.created, result.changed) == (1, 1)

    assert set(Payment.objects.values_list("id", "description")) == {("pt_1", "ours"), ("pt_2", "ours")}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mode": "test"}, "mode: this payment exists in the other mode"),
        (
            {"createdAt": "2018-03-20T13:28:37.124"},
            "createdAt: must not change: this payment was created at another time",
        ),
    ],
)
@pytest.mark.parametrize("keep_going", [False, True])
def test_mode_and_creation_time_never_change(
    organization: Organization, changes: dict[str, str], reason: str, keep_going: bool
) -> None:
    load(line())

    _, refusals = load(line(description="changed", **changes), keep_going=keep_going)

    assert refusals == [f"f1:1: {reason}"]
    assert exported() == lines(line())


def test_invalid_record_in_any_file_stops_the_import(organization: Organization) -> None:
    result, refusals = load(
        lines(line(id="pt_1"), line(id="pt_2")),
        lines(line(id="pt_3"), line(id="pt_4", mode="prod"), b"nonsense", line(id="pt_5")),
    )

    assert refusals == [
        "f2:2: mode: must be one of live, test; --map mode:VALUE=TO translates it",
        "f2:3: is not JSON: JSON is malformed: invalid character (byte 4)",
    ]
    assert result == ImportResult(read=6, refused=2)
    assert not Payment.objects.exists()


def batch() -> list[bytes]:
    """Return so many lines that the import writes them before it reads the next ones."""
    return [line(id=f"pt_batch{number}") for number in range(conf.IMPORT_BATCH_RECORDS)]


def test_invalid_record_undoes_earlier_batches(organization: Organization) -> None:
    result, _ = load(lines(*batch(), b"{"))

    assert result == ImportResult(read=conf.IMPORT_BATCH_RECORDS + 1, refused=1)
    assert not Payment.objects.exists()


def test_keep_going_writes_the_valid_records(organization: Organization) -> None:
    content = compact([record(id="pt_1"), record(id="pt_2", mode="prod"), record(id="pt_3")])

    result, refusals = load(content, compact([record(id="pt_4")])[:-1], lines(line(id="pt_5")), keep_going=True)

    assert refusals == [
        "f1:1: record 2: mode: must be one of live, test; --map mode:VALUE=TO translates it",
        "f2:1: the file ends before its array is closed",
    ]
    assert result == ImportResult(read=5, refused=2, created=4)
    assert sorted(Payment.objects.values_list("id", flat=True)) == ["pt_1", "pt_3", "pt_4", "pt_5"]


class Failing(BytesIO):
    """A stream that fails at its end."""

    def readinto(self, buffer: Any) -> int:
        if not (count := super().readinto(buffer)):
            raise OSError(errno.EIO, "Input/output error")
        return count


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_read_error_undoes_earlier_batches(organization: Organization, pack: Callable[[bytes], bytes]) -> None:
    stream = Failing(pack(lines(*batch(), line(id="pt_1"), line(id="pt_2")))[:-8])
    refusals = Refusals()

    result = import_payments([Source("f", BufferedReader(stream))], on_refused=refusals)

    assert [refusal.partition(": ")[2] for refusal in refusals] == ["cannot be read any further: Input/output error"]
    assert result.written == 0
    assert not Payment.objects.exists()


class Interrupting(BytesIO):
    """A stream that raises KeyboardInterrupt at its end, long after its records are read."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content + b"\n" * CHUNK_BYTES)

    def readinto(self, buffer: Any) -> int:
        if not (count := super().readinto(buffer)):
            raise KeyboardInterrupt
        return count


def test_interrupted_import_writes_nothing(organization: Organization) -> None:
    stream = Interrupting(lines(*batch(), line(id="pt_1")))

    with pytest.raises(KeyboardInterrupt):
        import_payments([Source("stdin", BufferedReader(stream))], on_refused=Refusals())

    assert not Payment.objects.exists()


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_import_that_waits_for_a_lock_can_be_interrupted(organization: Organization) -> None:
    is_waiting = Event()

    class InterruptingLater(Interrupting):
        def readinto(self, buffer: Any) -> int:
            if self.tell() == len(self.getvalue()):
                assert is_waiting.wait(SECONDS_MAX)
            return super().readinto(buffer)

    def interrupt() -> None:
        execute("SET lock_timeout = 0")  # only the interruption can end the wait
        stream = InterruptingLater(lines(*batch()))
        with pytest.raises(KeyboardInterrupt):
            import_payments([Source("stdin", BufferedReader(stream))], on_refused=Refusals())

    importing = in_thread(interrupt)
    with transaction.atomic():
        execute("LOCK TABLE payments_payment IN SHARE MODE")
        importing.start()
        wait_until_blocked(importing)
        is_waiting.set()
        importing.join(timeout=SECONDS_MAX)
        has_ended = not importing.is_alive()
    importing.join()

    assert has_ended
    assert not Payment.objects.exists()


@pytest.mark.once
@pytest.mark.parametrize("text", [b"nonsense", line(organizationId="404")])
@pytest.mark.parametrize("left", [conf.IMPORT_BATCH_RECORDS - 1, 7, 1, 0])
def test_import_stops_after_the_maximum_number_of_errors(organization: Organization, left: int, text: bytes) -> None:
    """`left`: the first batch has so many of the errors."""
    valid = batch()[left:]

    result, refusals = load(lines(*valid, *[text] * 1000))

    assert len(refusals) == imports.REFUSED_MAX
    assert result == ImportResult(read=len(valid) + imports.REFUSED_MAX, refused=imports.REFUSED_MAX)


@pytest.mark.parametrize("count", [1, 1000])
def test_payments_stored_elsewhere_are_reported_up_to_the_maximum(organization: Organization, count: int) -> None:
    load(lines(*(line(id=f"pt_{number}") for number in range(count))))
    in_other_mode = lines(*(line(id=f"pt_{number}", mode="test") for number in range(count)))

    _, first_refusals = load(in_other_mode)
    _, all_refusals = load(in_other_mode, keep_going=True)

    assert len(first_refusals) == min(count, imports.REFUSED_MAX)
    assert len(all_refusals) == count


def test_errors_are_reported_in_the_order_of_the_file(organization: Organization) -> None:
    unknown = [line(id=f"pt_{number}", organizationId="404") for number in (3, 2, 1)]

    _, refusals = load(lines(unknown[0], b"nonsense", *unknown[1:], line()))

    assert [refusal.split(":")[1] for refusal in refusals] == ["1", "2", "3", "4"]


def test_payment_of_a_missing_organization_is_refused() -> None:
    _, refusals = load(line())

    assert refusals == ["f1:1: organizationId: this organization does not exist; --create-organizations creates it"]


@pytest.mark.parametrize("organization_id", ["1", str(2**63 - 1)])
def test_missing_organizations_are_created_on_request(organization_id: str) -> None:
    load(lines(line(id="pt_1", organizationId=organization_id), line(id="pt_2")), create_organizations=True)

    assert Organization.objects.filter(id=organization_id).exists()
    assert Payment.objects.count() == 2


def test_missing_organizations_are_created_in_order() -> None:
    """Otherwise two imports that create the same organizations could deadlock."""
    numbers = [16, 3, 8, 1001, 1]  # a set has another order
    records = [line(id=f"pt_{number}", organizationId=str(number)) for number in numbers]

    with CaptureQueriesContext(connection) as queries:
        load(lines(*records), create_organizations=True)

    inserts = [query["sql"] for query in queries if query["sql"].startswith('INSERT INTO "payments_organization"')]
    created = [name for sql in inserts for name in re.findall(r"'Organization (\d+)'", sql)]
    assert created == ["1", "3", "8", "16", "1001"]


def test_organization_that_exists_keeps_its_name(organization: Organization) -> None:
    load(line(), create_organizations=True)

    assert Organization.objects.get().name == organization.name


@pytest.mark.only("postgresql")
def test_error_of_the_last_batch_is_raised(organization: Organization) -> None:
    execute("ALTER TABLE payments_payment ADD CONSTRAINT refused CHECK (description <> 'refused')")

    with pytest.raises(IntegrityError, match='violates check constraint "refused"'):
        load(line(description="refused"))


def test_refused_import_creates_no_organization() -> None:
    load(lines(line(), b"{nonsense"), create_organizations=True)

    assert not Organization.objects.exists()


def test_number_of_statements_does_not_depend_on_the_batch_size(organization: Organization) -> None:
    load(line(id="pt_0"))  # creates the state
    execute("ANALYZE payments_payment")  # after other tests, the statistics may say that the table is empty
    counts = []
    for size in (1, 500):
        with CaptureQueriesContext(connection) as queries:
            load(lines(*(line(id=f"pt_{size}x{number}") for number in range(size))))
        counts.append(sum("ANALYZE" not in query["sql"] for query in queries))  # it follows many changes

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

    assert [payment.amount for payment in Payment.objects.order_by("id")] == [Decimal(value) for value in values]
