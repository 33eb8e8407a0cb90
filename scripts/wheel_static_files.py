"""A part of the build of a wheel: it collects the static files for the folder `staticfiles` of `payments_site`."""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COLLECT = """
import sys
import django
from django.core.management import call_command
from payments_site import settings

settings.STATIC_ROOT = sys.argv[1]
django.setup()
call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=["redoc"])  # unused, a third of all files
"""


class StaticFilesHook(BuildHookInterface[Any]):
    """Runs `collectstatic` with the settings of the project. Only the path of packages comes from the environment."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.collected = TemporaryDirectory()
        environment = {
            "PATH": os.defpath,
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # pip finds the packages of a build by it
            "PYTHONDONTWRITEBYTECODE": "true",
            "DJANGO_SETTINGS_MODULE": "payments_site.settings",
            "DATABASE_URL": "sqlite:///unused",
            "SECRET_KEY": "unused".ljust(50, "-"),
        }
        command = [sys.executable, "-c", COLLECT, self.collected.name]
        subprocess.run(command, cwd=self.root, env=environment, check=True)  # noqa: S603
        build_data["force_include"][self.collected.name] = "payments_site/staticfiles"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self.collected.cleanup()
