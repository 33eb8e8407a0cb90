"""The guide to the programs that fill a service: its commands work, and its numbers are those of the programs."""

import importlib
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from payments.models import ApiKey, Organization
from tests.deploy.test_unit import systemd_analyze
from tests.examples.mollie_server import MollieServer
from tests.examples.programs import EXAMPLES, Setting, serving
from tests.support.commands import run_command
from tests.support.processes import ROOT

pytestmark = pytest.mark.once

GUIDE = (ROOT / "docs/filling.md").read_text()
[SECTION] = [part for part in re.split(r"^## ", GUIDE, flags=re.MULTILINE) if part.startswith("Read Mollie")]
CREATE_KEY, RUN = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
KEYS, CRON = re.findall(r"```text\n(.*?)```", SECTION, re.DOTALL)
UNITS = dict(re.findall(r"`/etc/systemd/system/([\w.-]+)`.*?```ini\n(.*?)```", SECTION, re.DOTALL))
WORDS = " ".join(SECTION.split())


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with serving(MollieServer(), tmp_path) as setting:
        setting.provider.create()
        yield setting


def run_here(command: str, setting: Setting) -> None:
    """Run a command of the guide, with the local servers and files."""
    keys = {"MOLLIE_TOKEN": setting.provider.key, "STRIPE_KEY": "", "PAYMENTS_KEY": setting.service.key}
    file = setting.directory / "fetch.env"
    file.write_text(re.sub("(.+)=.*", lambda match: f"{match[1]}={keys[match[1]]}", KEYS))
    command = command.replace("/etc/payments/fetch.env", str(file)).replace("https://pay.example", setting.service.url)
    command = command.replace("/opt/payments", str(ROOT)).replace("/var/lib/payments", str(setting.directory))
    environment = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}

    done = run_command(["sh", "-ec", command], env={**environment, "MOLLIE_URL": setting.provider.url}, cwd=file.parent)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.processes
def test_command_fills_the_service(setting: Setting) -> None:
    run_here(RUN, setting)

    assert len(setting.service.records) == 1


@pytest.mark.processes
def test_line_of_cron_fills_the_service(setting: Setting) -> None:
    *when, command = CRON.split(maxsplit=5)
    assert when == ["*/5", "*", "*", "*", "*"]
    assert "%" not in command  # cron would end the command there

    run_here(command, setting)

    assert len(setting.service.records) == 1


@pytest.mark.processes
@pytest.mark.needs("systemd-analyze")
def test_units_are_valid(tmp_path: Path) -> None:
    assert [*UNITS] == ["fetch-mollie.service", "fetch-mollie.timer"]
    files = [tmp_path / name for name in UNITS]
    for file in files:
        file.write_text(UNITS[file.name].replace("/opt/payments", str(ROOT)))

    done = systemd_analyze("verify", "--man=no", *files)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.processes
def test_command_of_the_unit_fills_the_service(setting: Setting) -> None:
    [command] = re.findall("^ExecStart=(.*)$", UNITS["fetch-mollie.service"], re.MULTILINE)
    directory = re.findall("^StateDirectory=(.*)$", UNITS["fetch-mollie.service"], re.MULTILINE)
    command = command.replace(f"/var/lib/{directory[0]}", str(setting.directory))

    run_here(f"set -a; . /etc/payments/fetch.env; {command}", setting)

    assert len(setting.service.records) == 1


def test_command_creates_a_key_that_can_import(db: None) -> None:
    Organization.objects.create(id=7, name="Books")

    call_command(*shlex.split(CREATE_KEY)[1:])

    assert ApiKey.objects.get().scope == "import"


def test_numbers_of_the_guide_are_those_of_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    apis, fetching, mollie, stripe = map(importlib.import_module, ("apis", "fetching", "fetch_mollie", "fetch_stripe"))

    assert f"{mollie.Mollie.days} at Mollie, {stripe.Stripe.days} at Stripe" in WORDS
    assert f"More than {fetching.REFUSED_MAX:,} payments" in WORDS
    assert f"no run succeeds for {stripe.EVENT_DAYS.days} days" in WORDS
    assert len(apis.RETRY_SECONDS) == 6
    assert 31 < sum(apis.RETRY_SECONDS) < 32
    assert "six times within 32 seconds" in WORDS
