"""What many tests share."""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.client import ClientHandler
from hypothesis import Phase
from pytest_django import DjangoDbBlocker
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from payments.models import ApiKey, Organization
from payments.runtime.process import process
from payments.service.handler import ApiHandler
from tests.support import placement
from tests.support.api import REQUEST_ID, Api
from tests.support.factories import ApiKeyFactory, OrganizationFactory
from tests.support.migrated import VARIABLE, fresh_database, migrated, name_of
from tests.support.scale import examples
from tests.support.service import Service
from tests.support.tools import require

# Whoever runs the tests in the background may have them ignore Ctrl-C, and so every process that they begin.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run. HYPOTHESIS_PROFILE=explore looks for new ones and prints how to repeat a failure.
hypothesis.settings.register_profile("repeat", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", print_blob=True, deadline=None, max_examples=examples(100))
# Mutation tests need a failure, not the smallest one.
hypothesis.settings.register_profile(
    "unshrunk", derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate]
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))


def pytest_configure(config: pytest.Config) -> None:
    """Migrate one database, unless there is one. Every worker copies it as its test database."""
    if VARIABLE not in os.environ and not config.option.collectonly:
        stack = ExitStack()
        config.add_cleanup(stack.close)
        stack.enter_context(migrated())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that run elsewhere, mark those that start processes, and begin with what takes longest."""
    here = [item for item in items if placement.runs_here(item)]
    config.hook.pytest_deselected(items=list(set(items).difference(here)))
    for item in here:
        if placement.starts_processes(item):
            item.add_marker("processes")
    items[:] = sorted(here, key=placement.order)


class GroupScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a worker all tests of a group (tests/support/placement.py)."""

    def _split_scope(self, nodeid: str) -> str:
        return placement.group_of(nodeid.partition("::")[0].removeprefix("tests/"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling:
    """Replace the scheduler that --dist names."""
    return GroupScheduling(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        require(*mark.args)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Escape lone surrogates, which occur in captured logs and failures, and which workers cannot send."""
    return encodable((yield))


def encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {encodable(key): encodable(item) for key, item in value.items()}
        case list() | tuple():
            return type(value)(map(encodable, value))
    return value


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Use a copy of the migrated database as the test database."""
    usual = connection.settings_dict["NAME"]
    with fresh_database(tmp_path_factory.mktemp("database")) as url:
        connection.settings_dict["NAME"] = name_of(url)
        yield
        with django_db_blocker.unblock():
            connection.close()
        connection.settings_dict["NAME"] = usual


class ApiClientHandler(ApiHandler, ClientHandler):
    """Answers as the deployed service does, without a server."""


@pytest.fixture(scope="session", autouse=True)
def runtime_directory(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give these tests, and the services that they start, a runtime directory of their own."""
    settings.RUNTIME_DIRECTORY = tmp_path_factory.mktemp("run")


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    """Forget what an earlier test has used of a limit."""
    process.rate_limits.open().execute("DELETE FROM windows")
    process.rate_limits.warned_at = None
    process.last_use_paused_until.clear()


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
    """The API as the holder of `key` sees it."""
    return Api(client, key)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service as it is deployed: its own database, served by scripts/start."""
    directory = tmp_path_factory.mktemp("service")
    settings = {"ACCESS_LOG": "true", "BAD_KEY_LIMIT": ""}  # many tests show bad keys
    with (
        fresh_database(directory) as url,
        Service(url, settings=settings, workers=2, log=directory / "log").serving() as running,
    ):
        yield running


@pytest.fixture(scope="session")
def documents() -> Path:
    """Whole expected documents."""
    return Path(__file__).parent / "documents"
