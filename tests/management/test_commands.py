"""Management commands: the data on stdout, the messages on stderr, and the errors."""

import gzip
import io
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from pytest_django import Settings

from payments.models import ApiKey, Mode, Organization, Payment, Status, identifiers
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.lines import line

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """A function that runs a command and returns its stdout and its stderr."""

    def run(*arguments: str) -> tuple[str, str]:
        call_command(*arguments, stdout=sys.stdout, stderr=sys.stderr)
        sys.stdout.flush()
        written = capfdbinary.readouterr()
        return written.out.decode(), written.err.decode()

    return run


@pytest.fixture
def write_stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """A function that replaces the content of stdin."""

    def write(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    return write


def test_organization_is_created_with_id_and_name(run: Run) -> None:
    output, messages = run("create_organization", "7", "--name", "Books")

    assert Organization.objects.get().name == "Books"
    assert output == ""
    assert messages.splitlines() == [
        "Created organization 7, Books.",
        "Next: manage.py create_api_key --organization 7 --mode test --name NAME",
    ]


def test_organization_is_created_with_a_time_zone(run: Run, settings: Settings) -> None:
    settings.PAYMENTS_DEFAULT_TIME_ZONE = "Europe/Amsterdam"

    run("create_organization", "7", "--name", "Books")
    run("create_organization", "8", "--name", "Bikes", "--time-zone", "Asia/Kathmandu")
    with pytest.raises(CommandError, match="Enter the IANA name of a time zone"):
        run("create_organization", "9", "--name", "Music", "--time-zone", "Amsterdam")

    zones = dict(Organization.objects.values_list("id", "time_zone"))
    assert zones == {7: "Europe/Amsterdam", 8: "Asia/Kathmandu"}


@pytest.mark.parametrize("organization_id", ["1", "0", "-1", str(2**63)])
def test_existing_or_invalid_organization_id_is_refused(
    run: Run, organization: Organization, organization_id: str
) -> None:
    with pytest.raises(CommandError):
        run("create_organization", "--name", "Other", "--", organization_id)

    assert Organization.objects.get().name == "Books"


def test_created_key_goes_to_stdout_and_is_not_stored(run: Run, organization: Organization) -> None:
    output, messages = run("create_api_key", "--organization", "1", "--mode", "test", "--name", "Shop")

    text = output.removesuffix("\n")
    key = ApiKey.objects.get()
    assert re.fullmatch(r"test_[A-Za-z0-9]{38}", text)
    assert (key.organization, key.mode, key.name, key.expires_at) == (organization, "test", "Shop", None)
    assert key.digest == identifiers.digest(text)
    assert text not in messages
    assert text not in str(ApiKey.objects.values())


@pytest.mark.parametrize(
    ("public_base_url", "list_url"),
    [("", "http://127.0.0.1:8000/v2/payments"), ("https://pay.example", "https://pay.example/v2/payments")],
)
def test_messages_of_a_created_key_explain_use_and_revocation(
    run: Run, organization: Organization, settings: Settings, public_base_url: str, list_url: str
) -> None:
    settings.PAYMENTS_PUBLIC_BASE_URL = public_base_url

    _, messages = run("create_api_key", "--organization", "1", "--mode", "test", "--name", "Shop")

    number = ApiKey.objects.get().pk
    assert messages.splitlines() == [
        f"Created API key {number}. Store the key now: it cannot be printed again.",
        f'Next, with the key in $KEY: curl -H "Authorization: Bearer $KEY" {list_url}',
        f"To revoke it: manage.py revoke_api_key {number}",
    ]


@pytest.mark.parametrize(
    ("text", "expires_at"),
    [
        ("2099-01-31", datetime(2099, 1, 31, tzinfo=UTC)),
        ("2099-01-31T18:00+01:00", datetime(2099, 1, 31, 17, tzinfo=UTC)),
    ],
)
def test_key_is_created_with_expiry(run: Run, organization: Organization, text: str, expires_at: datetime) -> None:
    run("create_api_key", "--organization", "1", "--mode", "live", "--name", "x", "--expires", text)

    assert ApiKey.objects.get().expires_at == expires_at


@pytest.mark.parametrize(
    "arguments",
    [
        ("--organization", "2", "--mode", "live", "--name", "x"),
        ("--organization", str(2**70), "--mode", "live", "--name", "x"),
        ("--organization", "x", "--mode", "live", "--name", "x"),
        ("--organization", "1", "--mode", "prod", "--name", "x"),
        ("--organization", "1", "--mode", "live"),
        ("--organization", "1", "--mode", "live", "--name", "x", "--expires", "soon"),
        ("--organization", "1", "--mode", "live", "--name", "x", "--expires", "2020-01-01"),
        ("--organization", "1", "--mode", "live", "--name", "x", "--expires", "9999-12-31T23:59-12:00"),
        *(("--organization", "1", "--mode", "live", "--name", name) for name in ("", "a\tb", "a\n", "x" * 201)),
    ],
)
def test_key_is_not_created_with_invalid_arguments(
    run: Run, organization: Organization, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError):
        run("create_api_key", *arguments)

    assert not ApiKey.objects.exists()


def test_list_contains_no_keys_and_no_digests(run: Run, organization: Organization) -> None:
    key = ApiKeyFactory.create(organization=organization, name="Shop", last_used_at=None)
    ApiKeyFactory.create(name="Other")

    all_rows, _ = run("list_api_keys")
    output, _ = run("list_api_keys", "--organization", "1")

    heading, row = output.splitlines()
    created = f"{key.created_at.isoformat(sep=' ', timespec='seconds')}"
    assert len(all_rows.splitlines()) == 3
    assert heading.split("\t")[:2] == ["KEY", "ORGANIZATION"]
    assert row.split("\t") == [str(key.pk), "1", "live", "read", "Shop", created, "-", "-", "-", vars(key)["text"][-4:]]
    assert key.digest not in all_rows


def test_key_is_revoked_by_number(run: Run) -> None:
    key, other = ApiKeyFactory.create_batch(2)

    run("revoke_api_key", str(key.pk))

    key.refresh_from_db()
    other.refresh_from_db()
    assert key.revoked_at is not None
    assert other.revoked_at is None


def test_key_from_stdin_is_revoked(run: Run, organization: Organization, write_stdin: Callable[[bytes], None]) -> None:
    key, text = ApiKey.objects.issue(organization, mode="live", name="x")
    write_stdin(text.encode() + b"\n")

    _, messages = run("revoke_api_key", "-")

    key.refresh_from_db()
    assert key.revoked_at is not None
    assert text not in messages


def test_second_revocation_keeps_the_first_time(run: Run) -> None:
    key = ApiKeyFactory.create(revoked_at=datetime(2026, 1, 1, tzinfo=UTC))

    _, messages = run("revoke_api_key", str(key.pk))

    key.refresh_from_db()
    assert key.revoked_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert "was already revoked at 2026-01-01 00:00:00 UTC" in messages


@pytest.mark.parametrize("argument", ["7", "x", "", "٣", "9" * 5000])
def test_unknown_key_is_not_revoked(run: Run, argument: str) -> None:
    with pytest.raises(CommandError):
        run("revoke_api_key", argument)


def test_files_are_imported(run: Run, organization: Organization, tmp_path: Path) -> None:
    ApiKeyFactory.create(organization=organization)
    (tmp_path / "a.jsonl").write_bytes(line(id="pt_1"))
    (tmp_path / "b").write_bytes(gzip.compress(line(id="pt_2")))

    output, messages = run("import_payments", str(tmp_path / "a.jsonl"), str(tmp_path / "b"))

    assert (output, messages) == ("", "2 records read: 2 payments created, 0 changed, 0 unchanged, 0 refused.\n")
    assert Payment.objects.count() == 2


def test_dry_run_says_what_would_change_by_column(
    run: Run, organization: Organization, tmp_path: Path, write_stdin: Callable[[bytes], None]
) -> None:
    file = tmp_path / "payments.gz"
    file.write_bytes(gzip.compress(b"\n".join(line(id=f"pt_{number}", description="Tea") for number in range(5))))
    run("import_payments", str(file))
    changes: list[dict[str, Any]] = [{}, {}, {"description": ""}, {"method": "ideal", "metadata": {}}]
    write_stdin(
        b"\n".join(line(**{"id": f"pt_{number}", "description": "Tea", **each}) for number, each in enumerate(changes))
    )
    file.write_bytes(gzip.compress(line(id="pt_4") + b"\n" + line(id="pt_new")))

    _, messages = run("import_payments", "--dry-run", "-", str(file))

    columns = "description 2, method 1, metadata 1"
    assert messages.splitlines() == [
        f"6 records read: 1 payments would be created, 3 changed ({columns}), 2 unchanged, 0 refused.",
        "Next: run the same command without --dry-run",
    ]
    assert Payment.objects.filter(description="Tea", method="creditcard").count() == 5 == Payment.objects.count()


@pytest.mark.parametrize(
    ("options", "summary"),
    [
        ([], "2 records read: 1 refused. Nothing was changed."),
        (["--keep-going"], "2 records read: 1 payments would be created, 0 changed, 0 unchanged, 1 refused."),
    ],
)
def test_dry_run_fails_if_the_import_would_fail(run: Run, tmp_path: Path, options: list[str], summary: str) -> None:
    file = tmp_path / "payments.jsonl"
    file.write_bytes(line(id="pt_1") + b"\n" + line(id="pt_2", mode="prod"))

    with pytest.raises(CommandError) as error:
        run("import_payments", "--dry-run", "--create-organizations", *options, str(file))

    assert (str(error.value), error.value.returncode) == (summary, 1)
    assert not Organization.objects.exists()


@pytest.mark.parametrize("mode", Mode.values)
def test_import_suggests_a_key_if_the_organization_has_no_usable_one(
    run: Run, organization: Organization, tmp_path: Path, mode: str
) -> None:
    ApiKeyFactory.create(organization=organization, revoked_at=NOON)
    file = tmp_path / "payments.jsonl"
    file.write_bytes(line(mode=mode))

    _, first = run("import_payments", str(file))
    _, again = run("import_payments", str(file))

    assert first.splitlines()[1:] == [f"Next: manage.py create_api_key --organization 1 --mode {mode} --name NAME"]
    assert again.splitlines()[1:] == []


def test_import_succeeds_if_the_suggestion_of_a_key_fails(run: Run, organization: Organization, tmp_path: Path) -> None:
    file = tmp_path / "payments.jsonl"
    file.write_bytes(line())

    def fail_on_keys(execute: Any, statement: str, *rest: Any) -> Any:
        if "payments_apikey" in statement:
            raise OperationalError("the connection is closed")
        return execute(statement, *rest)

    with connection.execute_wrapper(fail_on_keys):
        _, messages = run("import_payments", str(file))

    assert messages == "1 records read: 1 payments created, 0 changed, 0 unchanged, 0 refused.\n"


def test_stdin_is_imported(run: Run, organization: Organization, write_stdin: Callable[[bytes], None]) -> None:
    write_stdin(line())

    run("import_payments", "-")

    assert Payment.objects.count() == 1


def test_closed_stdin_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)

    with pytest.raises(CommandError, match="stdin: is closed"):
        run("import_payments", "-")


def test_invalid_record_is_reported_with_file_line_field_and_reason(
    run: Run, organization: Organization, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "payments.jsonl"
    file.write_bytes(line(id="pt_1") + b"\n" + line(id="pt_2", mode="prod"))

    with pytest.raises(CommandError) as error:
        run("import_payments", str(file))

    assert (
        f"{file}:2: mode: must be one of live, test; --map mode:VALUE=TO translates it\n"
        in capfdbinary.readouterr().err.decode()
    )
    assert str(error.value) == "2 records read: 1 refused. Nothing was changed."
    assert error.value.returncode == 1


def test_import_with_keep_going_fails_after_an_invalid_record(
    run: Run, organization: Organization, tmp_path: Path
) -> None:
    file = tmp_path / "payments.jsonl"
    file.write_bytes(line(id="pt_1") + b"\n" + line(id="pt_2", mode="prod"))

    with pytest.raises(CommandError, match=r"2 records read: 1 payments created, 0 changed, 0 unchanged, 1 refused\.$"):
        run("import_payments", "--keep-going", str(file))

    assert Payment.objects.count() == 1


@pytest.mark.parametrize(("name", "reason"), [("missing.jsonl", "No such file or directory"), (".", "Is a directory")])
def test_import_does_not_start_if_a_file_cannot_be_opened(
    run: Run, organization: Organization, tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "good.jsonl").write_bytes(line())

    with pytest.raises(CommandError, match=f"{re.escape(str(tmp_path / name))}: {reason}"):
        run("import_payments", str(tmp_path / "good.jsonl"), str(tmp_path / name))

    assert not Payment.objects.exists()


def test_export_has_the_order_of_the_list(run: Run, organization: Organization, tmp_path: Path) -> None:
    other = OrganizationFactory.create(id=2)
    for name, owner, mode in (("a", other, "live"), ("b", organization, "test"), ("c", organization, "live")):
        PaymentFactory.create(id=f"pt_{name}", organization=owner, mode=mode)
    PaymentFactory.create(id="pt_d", organization=organization)

    def exported(*arguments: str) -> list[str]:
        output, messages = run("export_payments", *arguments)
        assert messages == ""
        return re.findall(r'^\{"id":"pt_(.)"', output, re.MULTILINE)

    assert exported() == ["d", "c", "b", "a"]
    assert exported("--organization", "1") == ["d", "c", "b"]
    assert exported("--mode", "live") == ["d", "c", "a"]
    assert exported("--organization", "1", "--mode", "test") == ["b"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--status", "open,failed"], "cb"),
        (["--status", "open", "--status", "failed"], "cb"),
        (["--customer-id", "ct_1"], "da"),
        (["--created-at-gte", "2026-01-02", "--created-at-lt", "2026-01-03T12:00:00Z"], "b"),
        (["--created-at-gte", "2026-01-02 12:00:00.0000001", "--created-at-lt", "2026-01-03T12:00:00.0000001Z"], "c"),
        (["--created-at-gt", "2026-01-02T11:59:59,9999", "--created-at-lte", "2026-01-03T12:00:00.0009+00"], "cb"),
        (["--currency", "EUR", "--amount-gte", "10", "--amount-lt", "-5"], None),
        (["--currency", "EUR", "--amount-lt", "-5"], "a"),
        (["--metadata", "a=b=c", "--metadata", "d=e"], "d"),
        (
            ["--mode", "live", "--paid-at-gte", "2026-01-01", "--method", "creditcard", "--sequence-type", "oneoff"],
            "da",
        ),
    ],
)
def test_export_supports_the_filters_of_the_list(
    run: Run, organization: Organization, arguments: list[str], names: str | None
) -> None:
    payments: dict[str, dict[str, Any]] = {
        "a": {"customer_id": "ct_1", "amount": -6},
        "b": {"status": Status.FAILED},
        "c": {"status": Status.OPEN, "mode": Mode.TEST},
        "d": {"customer_id": "ct_1", "metadata": '{"a":"b=c","d":"e"}', "mode": Mode.LIVE},
    }
    for day, (name, values) in enumerate(payments.items()):
        PaymentFactory.create(
            id=f"pt_{name}", organization=organization, created_at=NOON + timedelta(days=day), **values
        )

    if names is None:
        with pytest.raises(CommandError, match=r"amount\[lt\] must be at or above amount\[gte\]"):
            run("export_payments", *arguments)
    else:
        output, _ = run("export_payments", *arguments)
        assert "".join(re.findall(r'"id":"pt_(.)"', output)) == "".join(sorted(names, key="dbac".index))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--status", "x"], "status must be open, "),
        (["--amount-gte", "1"], r"amount\[gte\] must be used together with currency"),
        (["--created-at-gte", "2026-02-30"], r"createdAt\[gte\] must be .* with Z or an offset\.\Z"),
        (["--amount-gte", "1", "--amount-gte", "2"], r"amount\[gte\] must occur only once\.\Z"),
        (["--metadata", "x"], "--metadata must be KEY=VALUE"),
        (["--metadata", "=x"], "--metadata must be KEY=VALUE"),
        (["--metadata", "a=1", "--metadata", "a=2"], "Use each key once"),
    ],
)
def test_invalid_filter_is_refused(run: Run, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("export_payments", *arguments)


def test_export_of_an_unknown_organization_is_refused(run: Run) -> None:
    with pytest.raises(CommandError, match="Organization 7 does not exist"):
        run("export_payments", "--organization", "7")


def test_same_arguments_create_the_same_demo_payments(run: Run) -> None:
    arguments = ("create_demo_payments", "--count", "300", "--seed", "7", "--until", "2026-01-31")

    _, first = run(*arguments)
    exported, _ = run("export_payments")
    _, second = run(*arguments)

    assert first.startswith("300 demo payments: 300 written")
    assert second.startswith("300 demo payments: 0 written")
    assert run("export_payments")[0] == exported
    assert len(exported.splitlines()) == 300


@pytest.mark.parametrize(
    "arguments",
    [
        ("--count", "0"),
        ("--count", "x"),
        ("--until", "soon"),
        ("--until", "2026-1-5"),
        ("--until", "2026-02-30"),
        ("--until", "1970-12-31"),
    ],
)
def test_demo_payments_are_not_created_with_invalid_arguments(run: Run, arguments: tuple[str, str]) -> None:
    with pytest.raises(CommandError):
        run("create_demo_payments", *arguments)


def test_verbosity_0_hides_messages(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "payments.jsonl"
    file.write_bytes(line(organizationId="7"))

    results = [
        run(*command, "--verbosity", "0")
        for command in (
            ("create_organization", "7", "--name", "Books"),
            ("import_payments", str(file)),
            ("create_demo_payments", "--count", "1"),
            ("anonymize_payments", "--before", "2026-01-01"),
            ("anonymize_payments", "--before", "2026-01-01", "--dry-run"),
            ("create_api_key", "--organization", "7", "--mode", "live", "--name", "Shop"),
            ("revoke_api_key", str(ApiKey.objects.create(organization_id=7, mode="live", name="x").pk)),
        )
    ]

    assert [messages for _, messages in results] == [""] * 7
    assert [output != "" for output, _ in results] == [False] * 5 + [True, False]
