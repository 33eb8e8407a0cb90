"""The packages of requirements.txt are enough for the service."""

import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.commands import output_of
from tests.support.migrated import fresh_database
from tests.support.processes import ROOT
from tests.support.service import Service

pytestmark = [pytest.mark.once, pytest.mark.processes]

LOG_IN = """
import django
django.setup()
from django.test import Client
print(Client(SERVER_NAME="127.0.0.1").get("/admin/login/").status_code)
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A directory with the packages of requirements.txt, and no others."""
    directory = tmp_path / "packages"
    directory.mkdir()
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        requirement = Requirement(line.rstrip(" \\")) if "==" in line else None
        if requirement and (requirement.marker is None or requirement.marker.evaluate()):
            package = distribution(requirement.name)
            for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
                (directory / name).symlink_to(Path(str(package.locate_file(name))))
    return directory


def test_login_page_needs_no_time_zones_of_the_system(packages: Path, tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url:
        variables = {"PYTHONPATH": f"{packages}:{ROOT}", "PYTHONTZPATH": "/nonexistent", "TZ": "UTC"}
        service = Service(url, settings={"DJANGO_SETTINGS_MODULE": "payments_site.settings", **variables})

        assert output_of([sys.executable, "-S", "-c", LOG_IN], env=service.environment, cwd=tmp_path) == "200\n"
