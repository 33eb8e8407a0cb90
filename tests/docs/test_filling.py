"""The guide to filling the service: its commands create a key and import a payment."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.support.commands import run_command
from tests.support.migrated import fresh_database
from tests.support.processes import ROOT
from tests.support.service import START, Service

GUIDE = (ROOT / "docs/filling.md").read_text()
COMMANDS, *_ = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
RESPONSE, *_ = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.once
@pytest.mark.needs("curl")
def test_commands_of_the_guide_import_a_payment(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url, Service(url).serving(START) as service:
        manage = f'manage() {{ (cd {ROOT}; .venv/bin/python manage.py "$@"); }}\n'
        commands = manage + COMMANDS.replace("https://pay.example", service.base_url)
        done = run_command(["sh", "-ec", commands], cwd=tmp_path, env=os.environ | service.environment)

        expected = json.loads(RESPONSE.replace("https://pay.example", service.base_url))
        assert json.loads(done.stdout) == expected
