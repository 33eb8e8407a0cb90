"""`report_month`: the report on stdout, and its errors in one line."""

import json
import re

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from payments.models import Organization, SummedDay
from payments.models.days import day_of, last_of_month
from payments.totals.report import month_of
from tests.support.factories import PaymentFactory
from tests.totals.october import at, create_october

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
    PaymentFactory.create(organization=organization, test=True, created_at=at(31, 23, 59), paid_at=at(1, 0, month=11))
    options = ("--month", "2026-10", "--mode", "test", "--by", "created", "--format")

    document, table = json.loads(run(capsys, *options, "json")), run(capsys, *options, "csv")

    assert (document["mode"], document["by"], document["totals"][0]["paid"]) == ("test", "created", "10.00")
    assert table.splitlines()[1].startswith("total,2026-10,EUR,10.00,")


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
