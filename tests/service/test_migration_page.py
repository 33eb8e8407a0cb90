"""Requests in development to a database that lacks migrations: the response says what to do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DatabaseError, transaction
from django.test import Client, RequestFactory
from pytest_django import Settings

from payments.models import identifiers
from payments.service.middleware import MigrationPage
from tests.support.connecting import connected_to
from tests.support.migrated import empty_database
from tests.support.problem import assert_problem, problem
from tests.support.sql import fetch_value

MESSAGE = "The database is not migrated. Run manage.py migrate."
AUTHORIZATION = {"Authorization": f"Bearer {identifiers.new_key('live')}"}


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[None]:
    with empty_database(tmp_path) as url, connected_to(url):
        yield


@pytest.fixture
def development(settings: Settings) -> None:
    settings.DEBUG = True
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "payments.service.middleware.MigrationPage"]


def test_api_names_the_command_in_development(empty: None, development: None, client: Client) -> None:
    response = client.get("/v2/payments", headers=AUTHORIZATION)

    assert_problem(response, problem(503, "Service Unavailable", MESSAGE))


def test_page_names_the_command_in_development(empty: None, development: None, client: Client) -> None:
    client.cookies["sessionid"] = "x" * 32

    response = client.get("/admin/")

    assert (response.status_code, response.content.decode()) == (503, MESSAGE)


def test_production_reveals_nothing_about_migrations(empty: None, client: Client) -> None:
    response = client.get("/v2/payments", headers=AUTHORIZATION)

    assert_problem(response, problem(503, "Service Unavailable", "The service is unavailable. Try again later."))


@pytest.mark.django_db
def test_error_in_a_migrated_database_keeps_its_page() -> None:
    middleware = MigrationPage(lambda request: pytest.fail("is not called"))

    with pytest.raises(DatabaseError) as error, transaction.atomic():
        fetch_value("SELECT unknown FROM payments_payment")

    assert middleware.process_exception(RequestFactory().get("/"), error.value) is None
