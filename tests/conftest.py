"""Fixtures and pytest hooks for all tests."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import pytest
from django.apps import apps
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models.signals import post_migrate
from django.http import HttpRequest
from django.test import Client
from django.test.client import ClientHandler
from pytest_django import DjangoDbBlocker, Settings
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

from payments.conf import forget_values
from payments.models import ApiKey, Organization
from payments.runtime.process import process
from payments.service.handler import NEEDS_NO_MIDDLEWARE, respond_directly
from tests.support.api import REQUEST_ID, Api
from tests.support.citus import citus_cluster
from tests.support.commands import output_of
from tests.support.factories import ApiKeyFactory, OrganizationFactory
from tests.support.migrated import VARIABLE, fresh_database, migrated, name_of
from tests.support.password_hashing import QUICK_HASHER, RecordingHasher
from tests.support.postgresql import SharedPostgresql, breakable_postgresql
from tests.support.processes import ROOT
from tests.support.scale import IS_LONG, examples
from tests.support.service import START, Service
from tests.support.tools import require

# A shell starts a background process with SIGINT ignored. The processes that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# requirements/dev.txt installs programs, such as Node.js, beside Python.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# Until the tests are collected, nothing is garbage: searching for it takes a quarter of the time.
gc.disable()

# Each run uses the same examples. HYPOTHESIS_PROFILE=explore generates new ones and prints how to repeat a failure.
hypothesis.settings.register_profile("repeat", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", print_blob=True, deadline=None, max_examples=examples(100))
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=("sqlite", "postgresql", "citus"),
        default="sqlite",
        help="The database of the tests. A server of PostgreSQL or a Citus cluster starts, and ends with the tests.",
    )
    parser.addoption("--skips", type=Path, help="A file that gets the reason of each skipped test, one per line.")


def restore_roles(*, using: str, **_: Any) -> None:
    """Create the groups of the roles again: a test with transactions deletes all rows at its end."""
    if using == DEFAULT_DB_ALIAS:
        import_module("payments.migrations.0002_roles").create_roles(apps)


post_migrate.connect(restore_roles, sender=apps.get_app_config("payments"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that run elsewhere. Begin with tests that start processes, because they take longest."""
    database = os.environ["TEST_DATABASE"]
    selected = [item for item in items if database in databases_of(item) and (IS_LONG or not is_marked(item, "long"))]
    config.hook.pytest_deselected(items=list(set(items).difference(selected)))
    items[:] = sorted(selected, key=lambda item: (not is_marked(item, "xdist_group"), not is_marked(item, "processes")))


def databases_of(item: pytest.Item) -> set[str]:
    """Return the databases on which a test runs. Its own mark replaces its module's, but `also` adds to the others."""
    added: set[str] = set()
    for mark in item.iter_markers():
        match mark.name:
            case "only":
                return added | set(mark.args)
            case "once" if not IS_LONG:
                return added | (set(mark.args) or {"sqlite"})
            case "also" if IS_LONG or not mark.kwargs.get("long"):
                added |= set(mark.args)
    return added | {"sqlite", "postgresql"}


def is_marked(item: pytest.Item, name: str) -> bool:
    return item.get_closest_marker(name) is not None


class GroupScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """Assigns all tests of a group to one worker. A module without a group is a group of its own."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return group.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling:
    """Return the scheduler, which replaces that of --dist."""
    return GroupScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Start the database before the workers, which inherit its variables."""
    start_database(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()  # the garbage collector does not traverse the modules and the collected tests
    gc.enable()
    if session.items and not session.config.option.collectonly:
        start_database(session.config)


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def start_database(config: pytest.Config) -> None:
    """Start the server or the cluster that `--database` names, unless it has started, and create its databases."""
    if VARIABLE in os.environ:
        return
    name = os.environ["TEST_DATABASE"]
    port = urlsplit(os.environ.get("DATABASE_URL", "")).port
    stack = ExitStack()
    config.add_cleanup(stack.close)
    if name == "citus":
        os.environ.update(stack.enter_context(citus_cluster(port=port)).variables)
        return
    if name == "postgresql" and "TEST_DATABASE_URL" not in os.environ:
        stack.enter_context(breakable_postgresql(SharedPostgresql, port=port))
    stack.enter_context(migrated())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    is_worker = "PYTEST_XDIST_WORKER" in os.environ  # its results are also those of the main process
    if config.option.skips and not is_worker:
        reasons = [report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped")]
        with config.option.skips.open("a") as file:
            file.writelines(f"{reason}\n" for reason in reasons)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        require(*mark.args)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Escape lone surrogates in captured logs and failures, because a worker cannot send them."""
    return escape_surrogates((yield))


def escape_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {escape_surrogates(key): escape_surrogates(item) for key, item in value.items()}
        case list() | tuple():
            return type(value)(map(escape_surrogates, value))
    return value


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Use a copy of the migrated database as the test database."""
    original = connection.settings_dict["NAME"]
    with fresh_database(tmp_path_factory.mktemp("database")) as url:
        connection.settings_dict["NAME"] = name_of(url)
        yield
        with django_db_blocker.unblock():
            connection.close()
        connection.settings_dict["NAME"] = original


class ApiClientHandler(ClientHandler):
    """Handles requests like the deployed service, without a server."""

    def get_response(self, request: HttpRequest) -> Any:
        if NEEDS_NO_MIDDLEWARE.fullmatch(request.path_info):
            return respond_directly(request)
        return super().get_response(request)


@pytest.fixture(scope="session", autouse=True)
def runtime_directory(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give the tests, and the services that they start, their own runtime directory."""
    settings.PAYMENTS_RUNTIME_DIRECTORY = tmp_path_factory.mktemp("run")
    forget_values()


@pytest.fixture(autouse=True)
def reset_limits() -> None:
    """Remove the requests, pauses and outages of earlier tests."""
    process.rate_limits.open().execute("DELETE FROM windows")
    process.last_use_paused_until.clear()
    process.data_breakers.clear()
    process.primary.breaker.close()
    process.replica.breaker.close()


@pytest.fixture
def failing_fast(settings: Settings) -> None:
    """Make reads of some data fail fast after an outage of any duration, for a minute."""
    settings.PAYMENTS_OUTAGE_SECONDS_MIN = 0
    settings.PAYMENTS_OUTAGE_OPEN_SECONDS = 60


@pytest.fixture
def quick_hasher(settings: Settings) -> None:
    """Hash passwords with few iterations, and record them."""
    settings.PASSWORD_HASHERS = [QUICK_HASHER]
    RecordingHasher.hashed.clear()


@pytest.fixture
def client() -> Client:
    client = Client(headers={"X-Request-ID": REQUEST_ID})
    client.handler = ApiClientHandler(enforce_csrf_checks=True)
    return client


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=1, name="Books")


@pytest.fixture
def key(organization: Organization) -> ApiKey:
    return ApiKeyFactory.create(organization=organization, mode="live")


@pytest.fixture
def api(client: Client, key: ApiKey) -> Api:
    """A client of the API with `key`."""
    return Api(client, key)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The deployed service: scripts/start with its own database."""
    directory = tmp_path_factory.mktemp("service")
    settings = {"ACCESS_LOG": "true"}
    with (
        fresh_database(directory) as url,
        Service(url, settings=settings, workers=2, log=directory / "log").serving(START) as running,
    ):
        yield running


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist."""
    directory = tmp_path_factory.mktemp("dist")
    output_of([sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, ROOT])
    [wheel] = directory.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def installed_wheel(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which pip has installed the wheel. Its dependencies are those of the tests."""
    directory = tmp_path_factory.mktemp("installed")
    options = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--target", directory)
    output_of([sys.executable, "-m", "pip", "install", *options, wheel])
    return directory


@pytest.fixture(scope="session")
def documents() -> Path:
    """The directory of the expected documents."""
    return Path(__file__).parent / "documents"
