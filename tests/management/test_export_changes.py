"""`export_payments --changes` writes what has changed since the last run, and keeps its position in a file."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from django.core.management import CommandError, call_command

from payments.listing.tokens import FeedPosition, format_token, parse_token
from payments.models import Organization, Payment
from tests.support.factories import PaymentFactory
from tests.support.revisions import restore
from tests.support.tools import needs_linux

pytestmark = pytest.mark.django_db

Export: TypeAlias = Callable[[], list[str]]


@pytest.fixture
def payments(organization: Organization) -> None:
    for name in "ABC":
        PaymentFactory.create(id=f"pt_{name}", organization=organization)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "shop.token"


def run(file: Path, **options: Any) -> None:
    call_command(
        "export_payments", **{"organization": 1, "mode": "live", "changes": True, "token_file": file, **options}
    )


@pytest.fixture
def export(file: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Export:
    """Run the command, and return the IDs of the payments that it has written."""

    def export() -> list[str]:
        run(file)
        return [json.loads(line)["id"] for line in capsysbinary.readouterr().out.splitlines()]

    return export


def test_each_run_writes_what_has_changed_since_the_last_one(payments: None, export: Export) -> None:
    assert export() == ["pt_A", "pt_B", "pt_C"]
    assert export() == []
    Payment.objects.filter(id="pt_A").update(description="changed")
    PaymentFactory.create(id="pt_D", organization_id=1)
    assert export() == ["pt_A", "pt_D"]


def test_lines_are_those_of_an_export(payments: None, file: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    run(file)
    changes = capsysbinary.readouterr().out
    call_command("export_payments", organization=1, mode="live")

    assert sorted(changes.splitlines()) == sorted(capsysbinary.readouterr().out.splitlines())


def test_pages_of_an_export_are_joined(payments: None, file: Path, export: Export) -> None:
    """A page has 2,000 payments."""
    ids = [f"pt_{number:04}" for number in range(4001)]
    organization = Organization.objects.get()
    Payment.objects.bulk_create(PaymentFactory.build(id=name, organization=organization) for name in ids)

    assert export() == ["pt_A", "pt_B", "pt_C", *ids]


def test_position_is_replaced_only_after_both_files_are_stored(
    payments: None, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash of the machine, the position must not be ahead of the payments."""
    stored: list[tuple[int, bool]] = []
    output = tmp_path / "payments.jsonl"
    monkeypatch.setattr("os.fsync", lambda number: stored.append((os.fstat(number).st_size, file.exists())))
    with output.open("w") as stdout, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", stdout)
        run(file)

    text = file.read_text()
    assert text == f"{format_token(parse_token(text.strip()))}\n"
    assert stored == [(output.stat().st_size, False), (len(text), False)]
    assert sorted(tmp_path.iterdir()) == [output, file]


@needs_linux
def test_position_stays_if_the_payments_could_not_be_written(
    payments: None, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", full)
        with pytest.raises(CommandError, match=r"^stdout: No space left on device\. Free disk space\.$"):
            run(file)

    assert not file.exists()


def test_lost_changes_are_an_error_that_says_what_to_do(payments: None, file: Path, export: Export) -> None:
    export()
    before = file.read_text()
    restore(2)

    with pytest.raises(CommandError, match="delete this file and your copy of the payments"):
        run(file)

    assert file.read_text() == before


FOREIGN = format_token(FeedPosition(2, "test"))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "this is not a token of the change feed."),
        ("pt_A", "this is not a token of the change feed."),
        ("\0", "this is not a token of the change feed."),
        (FOREIGN, r"this token is of organization 2 \(test\)."),
    ],
)
def test_file_without_a_token_of_these_payments_is_refused(
    payments: None, file: Path, content: str, error: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file.write_text(content)

    with pytest.raises(CommandError, match=rf"shop\.token: {error}$"):
        run(file)

    assert file.read_text() == content
    assert capsysbinary.readouterr().out == b""


def test_directory_that_does_not_exist_is_an_error_before_the_export(
    payments: None, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(CommandError, match="this directory does not exist"):
        run(tmp_path / "none" / "shop.token")

    assert capsysbinary.readouterr().out == b""


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"organization": None}, "--changes needs --token-file, --organization and --mode"),
        ({"mode": None}, "--changes needs --token-file, --organization and --mode"),
        ({"token_file": None}, "--changes needs --token-file, --organization and --mode"),
        ({"changes": False}, "--token-file needs --changes"),
        ({"status": "open"}, "cannot be combined with filters"),
        ({"metadata": ["a=b"]}, "cannot be combined with filters"),
    ],
)
def test_options_that_do_not_fit_are_refused(payments: None, file: Path, options: dict[str, Any], error: str) -> None:
    with pytest.raises(CommandError, match=error):
        run(file, **options)

    assert not file.exists()
