"""The application in other Django projects: a stock one, and one whose settings differ in every way that matters."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
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
    "UNAUTHENTICATED_TOKEN": "shop.routing.Token",
    "VIEW_NAME_FUNCTION": "shop.routing.name_view",
    "VIEW_DESCRIPTION_FUNCTION": "shop.routing.name_view",
}
"""

ROUTING = """
class Router:
    def db_for_read(self, model, **hints):
        return "other" if model._meta.app_label == "people" and False else None

    def allow_migrate(self, db, app_label, **hints):
        return db == "default"


class Token:
    pass


def name_view(view, html=False):
    return "a view of the project"


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
PAGES = ["start", "reads", "list", "search", "payment", "export", "keys", "new key", "organizations", "organization"]


@dataclass
class Project:
    """A Django project in a directory, named `shop`."""

    directory: Path
    stock_settings: str
    application: Path = ROOT

    def write(self, path: str, text: str) -> None:
        file = self.directory / path
        file.parent.mkdir(exist_ok=True)
        with file.open("a") as stream:
            stream.write(text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{self.directory}:{self.application}"}
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


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stock")
    output_of([sys.executable, "-m", "django", "startproject", "shop", str(directory)])
    return directory


@pytest.fixture
def project(stock: Path, tmp_path: Path) -> Iterator[Project]:
    """A stock project with an empty database and the application at its root."""
    directory = copytree(stock, tmp_path / "project")
    with empty_database(tmp_path) as url:
        database = f'\nDATABASES["default"] = {stock_engine(url)!r}\n'
        project = Project(directory, (directory / "shop/settings.py").read_text() + database)
        project.write("shop/settings.py", f"{STOCK}{database}")
        (directory / "shop/urls.py").unlink()
        yield project


@pytest.mark.parametrize(
    "prefix",
    [
        pytest.param("", marks=[pytest.mark.once, pytest.mark.extended]),
        # Django's own engine connects to PostgreSQL for each request, so this takes long.
        pytest.param("", marks=[pytest.mark.only("postgresql"), pytest.mark.extended], id="PostgreSQL"),
        pytest.param("billing/", marks=[pytest.mark.once, pytest.mark.extended]),
    ],
)
def test_stock_project_serves_the_application(project: Project, prefix: str) -> None:
    project.write("shop/urls.py", URLS.format(prefix=prefix))

    report = project.exercise(f"/{prefix}".removesuffix("/"))

    assert_complete(report)


@pytest.mark.once
@pytest.mark.extended
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
    assert report["name"] == "Payments"
    assert report["admin"]["status"] == dict.fromkeys(PAGES, 200)
    assert (report["admin"]["lists_payment"], report["admin"]["shows_api_link"]) == (True, True)
    assert (report["admin"]["lists_time"], report["admin"]["shows_time"]) == (True, True)  # in UTC
    assert report["admin"]["grouped_ids"] == []
    assert report["admin"]["reads"] == 5  # the list, the search, the payment with a list, the export
    assert not report["writes_migrations"]


WITHOUT_ADMIN = """
from django.urls import include, path

urlpatterns = [path("", include("payments.urls"))]
"""

# The response to a request for a payment, as a program and as a browser, after the application was used by a command.
REQUEST = """
import django

django.setup()
from django.core.management import call_command
from django.test import {client} as Client, utils
from payments.models import ApiKey, Organization
from tests.support.lines import issue_key, line, store

{decorator}
{prefix}def main():
    client = Client()
    headers = {{"Authorization": "Bearer " + key}}
    response = {await_}client.get("/v2/payments/pt_1", headers=headers)
    print(*[link["href"] for link in response.json()["_links"].values()])
    browser = {await_}client.get("/v2/payments", headers={{"Accept": "text/html", **headers}})
    print(browser.status_code)

call_command("migrate", verbosity=0)
store([line()])
key = issue_key(organization=1, mode="live")
utils.setup_test_environment()
main()
"""


API = "http://testserver"


def request(project: Project, **parts: str) -> list[str]:
    """Return what the script prints."""
    script = REQUEST.format(**{"client": "Client", "decorator": "", "prefix": "", "await_": ""} | parts)
    done = project.run("-W", "error", "-c", script)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.once
def test_project_without_an_admin_has_no_links_to_it(project: Project) -> None:
    project.write("shop/settings.py", 'INSTALLED_APPS.remove("django.contrib.admin")\nPAYMENTS_BROWSABLE_API = True\n')
    project.write("shop/urls.py", WITHOUT_ADMIN)

    assert request(project) == [f"{API}/v2/payments/pt_1 {API}/docs/reference/#payment-record", "200"]


@pytest.mark.extended
def test_project_can_use_asgi(project: Project) -> None:
    project.write("shop/urls.py", URLS.format(prefix=""))
    parts = {
        "client": "AsyncClient",
        "decorator": "from asgiref.sync import async_to_sync\n@async_to_sync",
        "prefix": "async ",
        "await_": "await ",
    }

    payment = f"{API}/admin/payments/payment/pt_5F1/change/"
    assert request(project, **parts) == [
        f"{API}/v2/payments/pt_1 {payment} {API}/docs/reference/#payment-record",
        "406",
    ]


TESTS = """
from django.test import TestCase


class ApiTests(TestCase):
    def test_list_needs_a_key(self):
        self.assertEqual(self.client.get("/v2/payments").status_code, 401)

    def test_documentation_is_public(self):
        self.assertEqual(self.client.get("/docs/").status_code, 200)
"""


@pytest.mark.extended
@pytest.mark.once
def test_tests_of_the_project_run_in_parallel(project: Project) -> None:
    project.write("shop/urls.py", URLS.format(prefix=""))
    for number in range(2):
        project.write(f"shop/tests_{number}.py", TESTS)

    done = project.run("manage.py", "test", "--parallel", "2", "--pattern", "tests_*.py")

    assert done.returncode == 0, done.stderr
    assert "Ran 4 tests" in done.stderr


@pytest.mark.extended
@pytest.mark.once
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", "System check identified no issues (0 silenced)."),
        ("USE_TZ = False", "(payments.E001) USE_TZ is False, but times of payments are in UTC."),
        (
            'DATABASE_ROUTERS = ["shop.elsewhere.Router"]\nDATABASES["other"] = DATABASES["default"]',
            "(payments.E002) The router sends payments to the database other.",
        ),
        (
            'DATABASES["default"]["TIME_ZONE"] = "Asia/Kolkata"',
            "(payments.E001) The database `default` has a TIME_ZONE",
        ),
        ("PAYMENTS_RATE = (600, 60)", "(payments.W005) PAYMENTS_RATE is not a setting of the application."),
        ('PAYMENTS_RATE_LIMIT = "600/60"', "(payments.E004) PAYMENTS_RATE_LIMIT must be None, or the requests"),
        ('PAYMENTS_DEFAULT_TIME_ZONE = "Mars"', "PAYMENTS_DEFAULT_TIME_ZONE must be the name of a time zone,"),
        ('PAYMENTS_RUNTIME_DIRECTORY = "/tmp/payments"', "PAYMENTS_RUNTIME_DIRECTORY must be a pathlib.Path."),
        ("PAYMENTS_PUBLIC_BASE_URL = None", "PAYMENTS_PUBLIC_BASE_URL must be a URL without a slash"),
        ('PAYMENTS_PUBLIC_BASE_URL = "https://pay.example/"', "PAYMENTS_PUBLIC_BASE_URL must be a URL without a slash"),
        ('ROOT_URLCONF = "shop.no_urls"', "(payments.W006) The project's URLs do not include payments.urls"),
    ],
)
def test_check_says_what_cannot_work(project: Project, settings: str, expected: str) -> None:
    project.write("shop/settings.py", settings)
    project.write("shop/urls.py", URLS.format(prefix=""))
    project.write("shop/no_urls.py", "urlpatterns = []")
    project.write("shop/elsewhere.py", "class Router:\n    def db_for_write(self, model, **hints): return 'other'\n")

    done = project.run("manage.py", "check")

    assert expected in done.stdout + done.stderr


# The page of figures, for a project whose language has a comma in numbers.
OVERVIEW = """
import django

django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client, utils
from payments.models import Organization

call_command("migrate", verbosity=0)
call_command("create_demo_payments", count=3000, verbosity=0, stdout=open("/dev/null", "w"))
utils.setup_test_environment()
client = Client()
client.force_login(get_user_model().objects.create_superuser("staff", "staff@shop.example", "password"))
for organization in Organization.objects.all()[:2]:
    page = "being computed"
    while "being computed" in page:
        page = client.get(f"/admin/?organization={organization.pk}&mode=live&period=90d").content.decode()
    print(page)
"""


@pytest.mark.extended
@pytest.mark.once
def test_charts_are_drawn_whatever_the_language_of_the_project(project: Project) -> None:
    admin = 'INSTALLED_APPS[INSTALLED_APPS.index("django.contrib.admin")] = "payments.admin.apps.PaymentsAdminConfig"'
    project.write("shop/settings.py", f'{admin}\nLANGUAGE_CODE = "de"\nUSE_THOUSAND_SEPARATOR = True\n')
    project.write("shop/urls.py", URLS.format(prefix=""))

    done = project.run("-c", OVERVIEW)

    assert done.returncode == 0, done.stderr[-3000:]
    charts = re.findall(r'<div class="plot">.*?</div>|<td class="meter"><svg.*?</svg>', done.stdout, re.DOTALL)
    assert sum("polyline" in chart for chart in charts) > 1
    grouped = re.compile(r'(?:x|width|height)="[0-9]+,|[0-9]\.[0-9]{3}\b')
    assert [found[0] for found in map(grouped.search, charts) if found] == []
    assert not re.search(r"organization=[0-9]+[.,]", done.stdout)


@pytest.mark.extended
@pytest.mark.once
def test_check_says_that_the_documentation_is_missing(project: Project) -> None:
    project.write("shop/urls.py", URLS.format(prefix=""))
    copytree(ROOT / "payments", project.directory / "payments")

    done = project.run("manage.py", "check")

    assert f"(payments.W007) The documentation is not in {project.directory / 'docs'}." in done.stderr


README_SECTION = re.compile(r"## Use it in your own Django project\n(.*?)\n## ", re.DOTALL)
URLS_WITHOUT_APPLICATION = """
from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls)]
"""


# Where the application is, and the modules of our project after a page of the admin and one of the documentation.
MODULES = """
import sys
import django; django.setup()
from django.test import Client
import payments
for path in ("/billing/docs/", "/admin/login/"):
    assert Client().get(path, headers={"Host": "localhost"}).status_code == 200
print(payments.__file__, [name for name in sys.modules if name.startswith("payments_site")])
"""


@pytest.mark.once
def test_lines_of_the_readme_suffice(project: Project) -> None:
    section = README_SECTION.search((ROOT / "README.md").read_text())
    assert section
    settings, urls = re.findall(r"^(.*?) +# in \w+\.py$", section[1], re.MULTILINE)
    commands = [shlex.split(line) for line in re.findall(r"^python (manage\.py .*)$", section[1], re.MULTILINE)]
    (project.directory / "shop/settings.py").write_text(project.stock_settings + settings)
    project.write("shop/urls.py", f"{URLS_WITHOUT_APPLICATION}{urls}\n")

    *_, created = [project.run(*command) for command in commands]

    assert created.returncode == 0, created.stderr
    script = f"""
import django; django.setup()
from django.test import Client
client = Client(headers={{"Authorization": "Bearer {created.stdout.strip()}", "Host": "localhost"}})
print(client.get("/billing/v2/payments").status_code, client.get("/billing/docs/").status_code)
"""
    assert project.run("-c", script).stdout == "200 200\n"


@pytest.mark.once
@pytest.mark.extended
@pytest.mark.xdist_group("wheel")
def test_installed_wheel_needs_nothing_of_our_project(project: Project, installed_wheel: Path) -> None:
    project.application = installed_wheel

    test_lines_of_the_readme_suffice(project)
    checked = project.run("manage.py", "check")
    modules = project.run("-c", MODULES)

    assert checked.stdout == "System check identified no issues (0 silenced).\n"
    assert modules.stdout == f"{installed_wheel}/payments/__init__.py []\n"
