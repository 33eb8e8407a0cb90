"""The application in other Django projects: a stock one, and one whose settings differ in every way that matters."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.commands import output_of, run_command
from tests.support.migrated import empty_database
from tests.support.processes import ROOT

pytestmark = pytest.mark.processes

STOCK = """
INSTALLED_APPS += ["rest_framework", "payments"]
DEBUG = False
ALLOWED_HOSTS = ["testserver"]
STATIC_ROOT = BASE_DIR / "static"
"""

DEMANDING = """
INSTALLED_APPS += ["people"]
AUTH_USER_MODEL = "people.Person"
DATABASES["default"]["ATOMIC_REQUESTS"] = True
DATABASES["other"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "other.sqlite3"}
DATABASE_ROUTERS = ["shop.routing.Router"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
LANGUAGE_CODE = "de"
USE_THOUSAND_SEPARATOR = True
TIME_ZONE = "Asia/Kolkata"
FORCE_SCRIPT_NAME = "/app"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAdminUser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.FormParser"],
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.AnonRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"anon": "1/day"},
    "DEFAULT_FILTER_BACKENDS": ["rest_framework.filters.SearchFilter"],
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.PageNumberPagination",
    "PAGE_SIZE": 2,
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.AcceptHeaderVersioning",
    "ALLOWED_VERSIONS": ["1"],
    "EXCEPTION_HANDLER": "shop.routing.refuse",
    "URL_FORMAT_OVERRIDE": "limit",
}
"""

ROUTING = """
class Router:
    def db_for_read(self, model, **hints):
        return "other" if model._meta.app_label == "people" and False else None

    def allow_migrate(self, db, app_label, **hints):
        return db == "default"


def refuse(exception, context):
    raise AssertionError("the project's exception handler was called")
"""

PEOPLE = """
import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models


class Person(AbstractUser):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
"""

URLS = """
from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("{prefix}admin/", admin.site.urls), path("{prefix}", include("payments.urls"))]
"""

# The language of the project changes the texts of Django, but none of ours.
PAGES = ["start", "list", "search", "payment", "export", "keys", "new key", "organizations", "organization"]


@dataclass
class Project:
    """A Django project in a directory, named `shop`."""

    directory: Path

    def write(self, path: str, text: str) -> None:
        file = self.directory / path
        file.parent.mkdir(exist_ok=True)
        with file.open("a") as stream:
            stream.write(text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{self.directory}:{ROOT}"}
        environment["DJANGO_SETTINGS_MODULE"] = "shop.settings"
        return run_command([sys.executable, *arguments], cwd=self.directory, env=environment)

    def exercise(self, prefix: str = "") -> Any:
        """Return the report of tests/hosts/exercise.py."""
        done = self.run("-m", "tests.hosts.exercise", prefix)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])


def stock_engine(url: str) -> dict[str, str]:
    """Return Django's own settings for a database."""
    if url.startswith("sqlite"):
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}
    parts = conninfo_to_dict(url)
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    return {"ENGINE": "django.db.backends.postgresql"} | {
        setting: str(parts[name]) for setting, name in names.items() if name in parts
    }


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A stock project with an empty database and the application at its root."""
    directory = tmp_path / "project"
    directory.mkdir()
    output_of([sys.executable, "-m", "django", "startproject", "shop", str(directory)])
    with empty_database(tmp_path) as url:
        project = Project(directory)
        project.write("shop/settings.py", f'{STOCK}\nDATABASES["default"] = {stock_engine(url)!r}\n')
        (directory / "shop/urls.py").unlink()
        yield project


@pytest.mark.parametrize("prefix", ["", "billing/"])
def test_stock_project_serves_the_application(project: Project, prefix: str) -> None:
    project.write("shop/urls.py", URLS.format(prefix=prefix))

    report = project.exercise(f"/{prefix}".removesuffix("/"))

    assert_complete(report)


def test_settings_of_a_demanding_project_change_nothing(project: Project) -> None:
    project.write("shop/settings.py", DEMANDING)
    project.write("shop/urls.py", URLS.format(prefix="billing/"))
    project.write("shop/routing.py", ROUTING)
    project.write("people/__init__.py", "")
    project.write("people/models.py", PEOPLE)
    project.write("people/migrations/__init__.py", "")
    assert project.run("manage.py", "makemigrations", "people").returncode == 0

    report = project.exercise("/billing")

    assert_complete(report)


def assert_complete(report: Any) -> None:
    """Check that the application does everything in the project that it does in ours."""
    assert report["corpus"]["failures"] == {}
    assert report["corpus"]["cases"] > 3000
    assert report["walks"]["errors"] == []
    assert min(report["walks"]["lengths"].values()) > 50
    assert set(report["documentation"].values()) == {200}
    assert report["admin"]["status"] == dict.fromkeys(PAGES, 200)
    assert (report["admin"]["lists_payment"], report["admin"]["shows_api_link"]) == (True, True)
    assert not report["writes_migrations"]
