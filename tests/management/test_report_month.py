"""`report_month`: the report on stdout, and its errors in one line."""

import json
import re

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from payments.models import Organization, SummedDay
from payments.models.days import day_of
from payments.totals.report import last_of_month, month_of
from tests.totals.october import create_october

pytestmark = pytest.mark.also("citus")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("report_month", "--organization", "1", *arguments)
    output, messages = capsys.readouterr()
    assert messages == ""
    return output


def test_report_is_written_to_stdout(organization: Organization, capsys: pytest.CaptureFixture[str]) -> None:
    create_october(organization)

    text = run(capsys, "--month", "2026-10")

    assert text.startswith("October 2026: Books (organization 1, live)\n\nBy paid day, in the time zone UTC.")
    assert re.search("Paid +100.00\n", text)
    assert SummedDay.objects.count() == 31


def test_options_select_mode_kind_of_day_and_format(
    organization: Organization, capsys: pytest.CaptureFixture[str]
) -> None:
    create_october(organization)

    live = json.loads(run(capsys, "--month", "2026-10", "--by", "created", "--format", "json"))
    test = json.loads(run(capsys, "--month", "2026-10", "--mode", "test", "--format", "json"))
    table = run(capsys, "--month", "2026-10", "--format", "csv")

    assert [row["paid"] for row in live["totals"]] == ["877.00"]
    assert (test["mode"], test["totals"], test["open"]) == ("test", [], [])
    assert table.startswith("section,name,currency,")


@pytest.mark.once
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--organization", "2", "--month", "2026-10"], "Organization 2 does not exist. To create it: "),
        (["--organization", "1", "--month", "9998-12"], "9998-12 is in the future. Choose a month that has begun."),
        (["--organization", "1", "--month", "2026-13"], "Error: argument --month: '2026-13' is not a month such as"),
        (["--organization", "1"], "Error: the following arguments are required: --month"),
        (["--month", "2026-10"], "Error: the following arguments are required: --organization"),
    ],
)
def test_error_is_one_line(organization: Organization, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError) as raised:
        call_command("report_month", *arguments)

    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_present_month_ends_today(organization: Organization, capsys: pytest.CaptureFixture[str]) -> None:
    organization.time_zone = "Pacific/Kiritimati"  # a day begins there first
    organization.save()

    before = day_of(timezone.now(), organization.zone)
    document = json.loads(run(capsys, "--month", month_of(before), "--format", "json"))
    after = day_of(timezone.now(), organization.zone)

    last_days = {f"{before}", f"{min(after, last_of_month(before))}"}
    assert document["lastDay"] in last_days
