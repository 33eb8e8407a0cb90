"""What many tests share."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from django.test import Client
from django.test.client import ClientHandler

from payments import last_use, limits
from payments.models import ApiKey, Organization
from payments_site.handlers import ApiHandler
from tests.api import REQUEST_ID, Api
from tests.factories import ApiKeyFactory, OrganizationFactory
from tests.service import Service, fresh_database

# Whoever runs the tests in the background may have them ignore Ctrl-C, and so every process that they begin.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time; HYPOTHESIS_PROFILE=explore looks for new ones, and prints how to repeat a failure.
hypothesis.settings.register_profile("repeat", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", print_blob=True, deadline=None, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))


class ApiClientHandler(ApiHandler, ClientHandler):
    """Answers as the deployed service does, without a server."""


@pytest.fixture(scope="session", autouse=True)
def temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have limits counted for these tests alone, and for the services that they start."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(tmp_path_factory.mktemp("tmp"))


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    """Forget what an earlier test has used of a limit."""
    limits.counting.shared_counter().connection.execute("DELETE FROM windows")
    limits.counting.warned_at = None
    last_use.paused_until.clear()


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
    """The service as it is deployed: its own database, filled by its own commands, served by scripts/start."""
    directory = tmp_path_factory.mktemp("service")
    settings = {"ACCESS_LOG": "true", "BAD_KEY_LIMIT": ""}  # many tests show bad keys
    with fresh_database(directory) as url, Service(url, settings=settings, log=directory / "log").running() as running:
        yield running


@pytest.fixture(scope="session")
def documents() -> Path:
    """Whole expected documents."""
    return Path(__file__).parent / "documents"
