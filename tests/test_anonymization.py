"""Anonymized payments: nothing personal is left of them, and they stay where they were in the list."""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from payments import anonymization
from payments.anonymization import BLANK, anonymize_payments, batches, older
from payments.export import export_payments
from payments.models import Access, Mode, Organization, Payment, Status
from tests.support.api import Api
from tests.support.connecting import connected_to
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.lines import MISSING, line
from tests.support.migrated import fresh_database
from tests.support.service import Service

pytestmark = pytest.mark.django_db

CANARY = "Zanzibar Quux"
PERSONAL = {
    "description": f"For {CANARY}",
    "redirect_url": "https://shop.example/?q=ZanzibarQuux",
    "webhook_url": "https://shop.example/ZanzibarQuux",
    "metadata": f'{{"name":"{CANARY}"}}',
    "details": f'{{"cardHolder":"{CANARY}"}}',
    "customer_id": "ct_ZanzibarQuux",
}
KEPT = [field.attname for field in Payment._meta.concrete_fields if field.attname not in PERSONAL]  # noqa: SLF001
ACCESS = Access(1, Mode.LIVE)
DAY = NOON.replace(hour=0)

Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command; return what it wrote to stderr."""

    def run(*arguments: str) -> str:
        call_command("anonymize_payments", *arguments, stderr=sys.stderr)
        return capfd.readouterr().err

    return run


def person(**values: Any) -> Payment:
    return PaymentFactory.create(**{**PERSONAL, **values})


def rows(*columns: str) -> list[tuple[Any, ...]]:
    return list(Payment.objects.order_by("id").values_list(*columns))


def anonymize(part: Access = ACCESS, **choice: Any) -> int:
    return anonymize_payments(part, on_progress=lambda _: None, **choice)


def test_what_is_personal_is_blanked_and_all_else_kept(organization: Organization, run: Run) -> None:
    for number, status in enumerate(Status.values):
        person(organization=organization, status=status, mode=Mode.values[number % 2])
    kept = rows(*KEPT)

    words = run("--before", "2026-01-02")

    assert words == f"{len(Status.values)} payments anonymized.\n"
    assert rows(*KEPT) == kept
    assert set(rows(*PERSONAL)) == {tuple(BLANK[column] for column in PERSONAL)}


def test_every_column_is_either_blanked_or_kept_for_a_reason() -> None:
    assert PERSONAL.keys() == BLANK.keys()
    assert sorted(KEPT) == [
        *("amount", "amount_currency", "amount_net", "amount_net_currency", "amount_remaining"),
        *("amount_remaining_currency", "created_at", "expires_at", "id", "method", "mode", "organization_id"),
        *("paid_at", "sequence_type", "status"),
    ]


def test_a_walk_finds_the_same_payments_in_the_same_order(organization: Organization, api: Api, run: Run) -> None:
    for number in range(30):
        person(organization=organization, created_at=NOON - timedelta(days=number // 4))

    def walked() -> list[tuple[Any, ...]]:
        payments = api.get(limit=250).json()["_embedded"]["payments"]
        return [(each["id"], each["createdAt"], each["paidAt"], each["amount"], each["status"]) for each in payments]

    before = walked()

    run("--before", "2025-12-30")

    assert walked() == before
    assert Payment.objects.filter(description="").count() == 30 - 12


@pytest.mark.parametrize(
    ("age", "is_blanked"),
    [(timedelta(milliseconds=1), True), (timedelta(0), False), (timedelta(milliseconds=-1), False)],
)
def test_a_payment_of_the_day_itself_is_kept(
    organization: Organization, run: Run, age: timedelta, is_blanked: bool
) -> None:
    person(organization=organization, created_at=DAY - age)

    words = run("--before", f"{DAY:%Y-%m-%d}")

    assert words == f"{int(is_blanked)} payments anonymized.\n"


def test_a_customers_payments_are_blanked_whatever_their_age(organization: Organization, run: Run) -> None:
    theirs = [person(organization=organization, mode=mode) for mode in Mode.values]
    other = person(organization=organization, customer_id="ct_other")

    words = run("--customer", "ct_ZanzibarQuux")

    assert words == "2 payments anonymized.\n"
    assert set(Payment.objects.filter(description="")) == set(theirs)
    assert Payment.objects.filter(**{**PERSONAL, "customer_id": "ct_other"}).get() == other


@pytest.mark.parametrize("choice", [("--before", "2026-01-02"), ("--customer", "ct_ZanzibarQuux")])
@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ((), {"1live", "1test", "2live", "2test"}),
        (("--organization", "1"), {"1live", "1test"}),
        (("--mode", "test"), {"1test", "2test"}),
        (("--organization", "2", "--mode", "live"), {"2live"}),
    ],
)
def test_what_is_of_another_organization_or_mode_stays_as_it_was(
    organization: Organization, run: Run, choice: tuple[str, ...], scope: tuple[str, ...], expected: set[str]
) -> None:
    for owner in (organization, OrganizationFactory.create(id=2)):
        for mode in Mode.values:
            person(id=f"pt_{owner.id}{mode}", organization=owner, mode=mode)

    run(*choice, *scope)

    assert {payment.id.removeprefix("pt_") for payment in Payment.objects.filter(**BLANK)} == expected
    assert Payment.objects.filter(**PERSONAL).count() == 4 - len(expected)


def test_running_it_again_changes_nothing(organization: Organization, run: Run) -> None:
    person(organization=organization)
    run("--before", "2026-01-02")

    assert run("--before", "2026-01-02") == "0 payments anonymized.\n"


def test_nothing_to_blank_is_no_failure(run: Run) -> None:
    assert run("--customer", "ct_nobody") == "0 payments anonymized.\n"


def test_a_dry_run_counts_and_changes_nothing(organization: Organization, run: Run) -> None:
    person(organization=organization)

    words = run("--before", "2026-01-02", "--dry-run")

    assert words == "1 payments would be anonymized.\nNext: run the same command without --dry-run\n"
    assert Payment.objects.filter(**PERSONAL).count() == 1


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
        ((), "one of the arguments --before --customer is required"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    organization: Organization, run: Run, arguments: tuple[str, ...], reason: str
) -> None:
    person(organization=organization)

    with pytest.raises(CommandError, match=reason):
        run(*arguments)

    assert Payment.objects.filter(**PERSONAL).count() == 1


def test_a_day_that_has_not_begun_is_in_the_future(run: Run) -> None:
    with pytest.raises(CommandError, match="is in the future"):
        run("--before", f"{timezone.now() + timedelta(days=1):%Y-%m-%d}")

    assert run("--before", f"{timezone.now():%Y-%m-%d}") == "0 payments anonymized.\n"


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 6, 7])
def test_batches_hold_each_older_payment_once(
    organization: Organization, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(anonymization, "BATCH_PAYMENTS", 3)
    made = [person(organization=organization, created_at=DAY - timedelta(days=n // 2 + 1)).id for n in range(count)]
    person(organization=organization, created_at=DAY)

    found = list(batches(Payment.objects.visible_to(ACCESS), before=DAY))

    assert sorted(payment_id for batch in found for payment_id in batch) == sorted(made)
    assert all(len(batch) == 3 for batch in found[:-1])


def test_what_an_interruption_leaves_the_next_run_does(
    organization: Organization, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(anonymization, "BATCH_PAYMENTS", 2)
    for _ in range(5):
        person(organization=organization)

    def lose_patience(_count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        anonymize_payments(ACCESS, before=NOON + timedelta(days=1), on_progress=lose_patience)
    left = Payment.objects.filter(**PERSONAL).count()
    words = run("--before", "2026-01-02")

    assert (left, words) == (3, "3 payments anonymized.\n")


def test_a_batch_is_found_in_the_lists_index(organization: Organization) -> None:
    for position in (None, (DAY, "pt_1")):
        statement = older(Payment.objects.visible_to(ACCESS), position)

        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET LOCAL enable_seqscan = off")
                cursor.execute("SET LOCAL enable_sort = off")
            plan = statement.explain()

        assert "payment_list" in plan
        assert ("created_at" in plan.lower() or "(created_at,id)<" in plan) == (position is not None)
        assert "SORT" not in plan.upper().replace("ENABLE_SORT", "")


@pytest.mark.django_db(transaction=True)
def test_it_does_not_wait_for_whoever_writes_the_same_payments_and_says_to_run_it_again(
    organization: Organization, run: Run
) -> None:
    payment = person(organization=organization)
    info = connection.connection.info

    with psycopg.connect(info.dsn, password=info.password) as importing:
        importing.execute("UPDATE payments_payment SET description = 'theirs' WHERE id = %s", [payment.id])
        with pytest.raises(
            CommandError, match=r"The database failed: could not .* Run the command again for the rest\."
        ):
            run("--before", "2026-01-02")

    assert run("--before", "2026-01-02") == "1 payments anonymized.\n"


def stored(service: Service) -> bytes:
    """Return all that the database holds of payments, once it has tidied up: SQLite's files, PostgreSQL's table."""
    if service.database_url.startswith("sqlite:///"):
        with connected_to(service.database_url), connection.cursor() as cursor:
            cursor.execute("VACUUM")
        file = Path(service.database_url.removeprefix("sqlite:///"))
        return b"".join(each.read_bytes() for each in file.parent.glob(f"{file.name}*"))
    with psycopg.connect(service.database_url) as server:
        return str(server.execute("SELECT payments_payment::text FROM payments_payment").fetchall()).encode()


def test_nothing_personal_is_left_in_the_database(tmp_path: Path) -> None:
    canary = "ZanzibarQuux"
    record = line(
        description=canary,
        redirectUrl=f"https://{canary}/",
        webhookUrl=f"https://shop.example/{canary}",
        metadata={"a": canary, canary: "b"},
        details={"a": canary, canary: "b"},
        customerId=f"ct_{canary}",
    )
    left_out = dict.fromkeys(("redirectUrl", "webhookUrl", "details", "customerId"), MISSING)
    with fresh_database(tmp_path) as url:
        service = Service(url)
        service.import_records([record])
        before = stored(service)

        service.manage("anonymize_payments", "--customer", f"ct_{canary}")

        assert canary.encode() in before
        assert canary.encode() not in stored(service)
        exported = service.exported().encode()
        assert exported == line(description="", metadata={}, **left_out) + b"\n"


def test_importing_an_old_file_again_brings_back_what_it_holds(
    organization: Organization, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "payments.jsonl"
    file.write_bytes(line())
    call_command("import_payments", str(file))
    run("--customer", "ct_7")

    call_command("import_payments", str(file))

    assert list(export_payments(Payment.objects.all())) == [line() + b"\n"]


@pytest.mark.parametrize("column", BLANK)
def test_a_column_that_was_forgotten_would_be_found_out(
    organization: Organization, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    monkeypatch.setattr(anonymization, "BLANK", {name: value for name, value in BLANK.items() if name != column})
    person(organization=organization)

    anonymize(before=NOON + timedelta(days=1))

    assert not Payment.objects.filter(**BLANK).exists()
