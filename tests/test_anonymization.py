"""Anonymized payments contain no personal data and keep their position in the list."""

import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from payments import anonymization
from payments.anonymization import BLANK, anonymize_payments, batches, next_batch
from payments.models import Access, Mode, Organization, Payment, Status
from tests.support.api import Api
from tests.support.connecting import connected_to
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.lines import MISSING, export_payments, line
from tests.support.migrated import fresh_database
from tests.support.service import Service
from tests.support.sql import execute

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

CANARY = "Zanzibar Quux"
PERSONAL_VALUES = {
    "description": f"For {CANARY}",
    "redirect_url": "https://shop.example/?q=ZanzibarQuux",
    "webhook_url": "https://shop.example/ZanzibarQuux",
    "metadata": f'{{"name":"{CANARY}"}}',
    "details": f'{{"cardHolder":"{CANARY}"}}',
    "customer_id": "ct_ZanzibarQuux",
}
OTHER_COLUMNS = [
    field.attname
    for field in Payment._meta.concrete_fields  # noqa: SLF001
    if field.attname not in {*PERSONAL_VALUES, "change_id", "anonymized_at"}
]
ACCESS = Access(1, Mode.LIVE)
DAY = NOON.replace(hour=0)

Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the command and returns its stderr."""

    def run(*arguments: str) -> str:
        call_command("anonymize_payments", *arguments, stderr=sys.stderr)
        return capfd.readouterr().err

    return run


def create_payment(**values: Any) -> Payment:
    """Create a payment with personal data."""
    return PaymentFactory.create(**{**PERSONAL_VALUES, "created_at": NOON, **values})


def rows(*columns: str) -> list[tuple[Any, ...]]:
    return list(Payment.objects.order_by("id").values_list(*columns))


def anonymize(**options: Any) -> int:
    return anonymize_payments(ACCESS, on_progress=lambda _: None, **options)


def test_personal_data_is_removed_and_other_data_stays(organization: Organization, run: Run) -> None:
    for number, status in enumerate(Status.values):
        create_payment(organization=organization, status=status, mode=Mode.values[number % 2])
    before = rows(*OTHER_COLUMNS)

    message = run("--before", "2026-01-02")

    assert message == f"{len(Status.values)} payments anonymized.\n"
    assert rows(*OTHER_COLUMNS) == before
    assert set(rows(*PERSONAL_VALUES)) == {tuple(BLANK[column] for column in PERSONAL_VALUES)}


def test_columns_without_personal_data_are_known() -> None:
    assert PERSONAL_VALUES.keys() == BLANK.keys()
    assert sorted(OTHER_COLUMNS) == [
        *("amount", "amount_currency", "amount_net", "amount_net_currency", "amount_remaining"),
        *("amount_remaining_currency", "created_at", "expires_at", "id", "method", "mode", "organization_id"),
        *("paid_at", "paid_before", "sequence_type", "status", "status_before"),
    ]


def test_walk_returns_the_same_payments_in_the_same_order(organization: Organization, api: Api, run: Run) -> None:
    for number in range(30):
        create_payment(organization=organization, created_at=NOON - timedelta(days=number // 4))

    def walk() -> list[tuple[Any, ...]]:
        payments = api.get(limit=250).json()["_embedded"]["payments"]
        names = ("id", "createdAt", "paidAt", "amount", "status")
        return [tuple(payment[name] for name in names) for payment in payments]

    before = walk()

    run("--before", "2025-12-30")

    assert walk() == before
    assert Payment.objects.filter(description="").count() == 30 - 12


@pytest.mark.parametrize(
    ("age", "is_anonymized"),
    [(timedelta(milliseconds=1), True), (timedelta(0), False), (timedelta(milliseconds=-1), False)],
)
def test_only_payments_from_before_the_day_are_anonymized(
    organization: Organization, run: Run, age: timedelta, is_anonymized: bool
) -> None:
    create_payment(organization=organization, created_at=DAY - age)

    message = run("--before", f"{DAY:%Y-%m-%d}")

    assert message == f"{int(is_anonymized)} payments anonymized.\n"


def test_payments_of_a_customer_are_anonymized_at_any_age(organization: Organization, run: Run) -> None:
    anonymized = [create_payment(organization=organization, mode=mode) for mode in Mode.values]
    other = create_payment(organization=organization, customer_id="ct_other")

    message = run("--customer", "ct_ZanzibarQuux", "--all-organizations")

    assert message == "2 payments anonymized.\n"
    assert set(Payment.objects.filter(description="")) == set(anonymized)
    assert Payment.objects.filter(**{**PERSONAL_VALUES, "customer_id": "ct_other"}).get() == other


@pytest.mark.parametrize(
    "selection", [("--before", "2026-01-02"), ("--customer", "ct_ZanzibarQuux", "--all-organizations")]
)
@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((), {"1live", "1test", "2live", "2test"}),
        (("--organization", "1"), {"1live", "1test"}),
        (("--mode", "test"), {"1test", "2test"}),
        (("--organization", "2", "--mode", "live"), {"2live"}),
    ],
)
def test_payments_of_other_organizations_and_modes_stay(
    organization: Organization, run: Run, selection: tuple[str, ...], limits: tuple[str, ...], expected: set[str]
) -> None:
    for owner in (organization, OrganizationFactory.create(id=2)):
        for mode in Mode.values:
            create_payment(id=f"pt_{owner.id}{mode}", organization=owner, mode=mode)

    run(*selection, *limits)

    assert {payment.id.removeprefix("pt_") for payment in Payment.objects.filter(**BLANK)} == expected
    assert Payment.objects.filter(**PERSONAL_VALUES).count() == 4 - len(expected)


def test_second_run_changes_nothing(organization: Organization, run: Run) -> None:
    create_payment(organization=organization)
    run("--before", "2026-01-02")

    assert run("--before", "2026-01-02") == "0 payments anonymized.\n"


def test_command_succeeds_without_matching_payments(run: Run) -> None:
    assert run("--customer", "ct_unknown", "--all-organizations") == "0 payments anonymized.\n"


def test_dry_run_counts_payments_and_changes_nothing(organization: Organization, run: Run) -> None:
    create_payment(organization=organization)

    message = run("--before", "2026-01-02", "--dry-run")

    assert message == "1 payments would be anonymized.\nNext: run the same command without --dry-run\n"
    assert Payment.objects.filter(**PERSONAL_VALUES).count() == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--before", "soon"), "argument --before: 'soon' is not a date such as 2026-01-31"),
        (("--before", "2026-1-5"), "argument --before: '2026-1-5' is not a date"),
        (("--before", "2026-02-30"), "argument --before: '2026-02-30' is not a day of the calendar"),
        (("--before", "9999-12-31"), "argument --before: '9999-12-31' is in the future"),
        (("--customer", "7"), "argument --customer: '7' is not a customer ID such as ct_7"),
        (("--customer", "ct_7\n"), "argument --customer: 'ct_7\\\\n' is not a customer ID"),
        (("--before", "2026-01-01", "--mode", "prod"), "argument --mode: invalid choice"),
        (("--before", "2026-01-01", "--organization", "404"), "Organization 404 does not exist"),
        (("--before", "2026-01-01", "--customer", "ct_7"), "not allowed with argument"),
        (("--customer", "ct_7"), r"^--customer requires --organization ID or --all-organizations: "),
        (("--customer", "ct_7", "--mode", "live"), "^--customer requires"),
        ((), "one of the arguments --before --customer is required"),
    ],
)
def test_invalid_arguments_are_refused(
    organization: Organization, run: Run, arguments: tuple[str, ...], reason: str
) -> None:
    create_payment(organization=organization)

    with pytest.raises(CommandError, match=reason):
        run(*arguments)

    assert Payment.objects.filter(**PERSONAL_VALUES).count() == 1


def test_today_is_accepted_and_tomorrow_refused(run: Run) -> None:
    with pytest.raises(CommandError, match="is in the future"):
        run("--before", f"{timezone.now() + timedelta(days=1):%Y-%m-%d}")

    assert run("--before", f"{timezone.now():%Y-%m-%d}") == "0 payments anonymized.\n"


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 6, 7])
def test_batches_contain_every_older_payment_once(organization: Organization, count: int) -> None:
    times = [DAY - timedelta(days=number // 2 + 1) for number in range(count)]
    ids = [create_payment(organization=organization, created_at=time).id for time in times]
    create_payment(organization=organization, created_at=DAY)

    result = list(batches(Payment.objects.visible_to(ACCESS), before=DAY, size=3))

    assert sorted(payment_id for batch in result for payment_id in batch) == sorted(ids)
    assert all(len(batch) == 3 for batch in result[:-1])


def test_next_run_continues_after_an_interruption(organization: Organization, run: Run) -> None:
    """A batch has 1,000 payments."""
    Payment.objects.bulk_create(PaymentFactory.build(**PERSONAL_VALUES, organization=organization) for _ in range(1003))

    def interrupt(_count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        anonymize_payments(ACCESS, before=NOON + timedelta(days=1), on_progress=interrupt)
    remaining = Payment.objects.filter(**PERSONAL_VALUES).count()
    message = run("--before", "2026-01-02")

    assert (remaining, message) == (3, "3 payments anonymized.\n")


@pytest.mark.only("sqlite", "postgresql")
def test_batch_is_read_along_the_index_of_the_list(organization: Organization) -> None:
    for position in (None, (DAY, "pt_1")):
        query = next_batch(Payment.objects.visible_to(ACCESS), position)

        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET LOCAL enable_seqscan = off")
                cursor.execute("SET LOCAL enable_sort = off")
            plan = query.explain()

        assert "payment_list" in plan
        assert ("created_at" in plan.lower() or "(created_at,id)<" in plan) == (position is not None)
        assert "SORT" not in plan.upper().replace("ENABLE_SORT", "")


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_payments_that_another_process_writes_are_reported_and_the_others_anonymized(
    organization: Organization, run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    payment = create_payment(organization=organization)
    other = create_payment(organization=OrganizationFactory.create(id=2))
    execute("SET lock_timeout = '5s'")  # of a command that waits
    info = connection.connection.info

    with psycopg.connect(info.dsn, password=info.password) as importing:
        importing.execute("UPDATE payments_payment SET description = 'changed' WHERE id = %s", [payment.id])
        with pytest.raises(CommandError, match=r"^Not all payments were anonymized\. Run the command again"):
            run("--before", "2026-01-02")

    assert capfd.readouterr().err.startswith("Organization 1 (live): the database failed: could not obtain lock")
    assert Payment.objects.get(**BLANK) == other
    assert run("--before", "2026-01-02") == "1 payments anonymized.\n"
    execute("RESET lock_timeout")


@pytest.mark.only("sqlite")
@pytest.mark.django_db(transaction=True)
def test_payments_without_personal_data_need_no_write_lock(organization: Organization, run: Run) -> None:
    PaymentFactory.create(organization=organization, **BLANK)

    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        message = run("--before", "2026-01-02")

    assert message == "0 payments anonymized.\n"


def stored(service: Service) -> bytes:
    """Return everything that the database stores about payments: the files of SQLite after VACUUM, or the table."""
    if service.database_url.startswith("sqlite:///"):
        with connected_to(service.database_url), connection.cursor() as cursor:
            cursor.execute("VACUUM")
        file = Path(service.database_url.removeprefix("sqlite:///"))
        return b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
    with psycopg.connect(service.database_url) as server:
        return str(server.execute("SELECT payments_payment::text FROM payments_payment").fetchall()).encode()


@pytest.mark.processes
def test_database_contains_no_personal_data_afterwards(tmp_path: Path) -> None:
    canary = "ZanzibarQuux"
    record = line(
        description=canary,
        redirectUrl=f"https://{canary}/",
        webhookUrl=f"https://shop.example/{canary}",
        metadata={"a": canary, canary: "b"},
        details={"a": canary, canary: "b"},
        customerId=f"ct_{canary}",
    )
    missing = dict.fromkeys(("redirectUrl", "webhookUrl", "details", "customerId"), MISSING)
    with fresh_database(tmp_path) as url:
        service = Service(url)
        service.import_records([record])
        before = stored(service)

        service.manage("anonymize_payments", "--customer", f"ct_{canary}", "--organization", "1")

        assert canary.encode() in before
        assert canary.encode() not in stored(service)
        exported = service.exported().encode()
        assert exported == line(description="", metadata={}, **missing) + b"\n"


def test_importing_an_old_file_restores_its_personal_data(organization: Organization, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "payments.jsonl"
    file.write_bytes(line())
    call_command("import_payments", str(file))
    run("--customer", "ct_7", "--organization", "1")

    call_command("import_payments", str(file))

    assert list(export_payments(Payment.objects.all())) == [line() + b"\n"]


@pytest.mark.parametrize("column", BLANK)
def test_forgotten_column_is_detected(organization: Organization, monkeypatch: pytest.MonkeyPatch, column: str) -> None:
    monkeypatch.setattr(anonymization, "BLANK", {name: value for name, value in BLANK.items() if name != column})
    create_payment(organization=organization)

    anonymize(before=NOON + timedelta(days=1))

    assert not Payment.objects.filter(**BLANK).exists()
