"""Slow work of one kind or of one client uses only its share of the threads; other requests are served meanwhile."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import Any

import pytest
from django.test import Client, RequestFactory
from django.urls import clear_script_prefix, set_script_prefix
from pytest_django import Settings

from payments.models import Organization
from payments.runtime.process import process
from tests.support.api import Api, wsgi_application
from tests.support.factories import ApiKeyFactory


@contextmanager
def filtering(api: Api) -> Iterator[None]:
    """Occupy the share of a key for reads with filters."""
    with ExitStack() as stack:
        for _ in range(process.shares.filters_max):
            stack.enter_context(process.shares.filters(api.key.digest))
        yield


@contextmanager
def responding_with_pages() -> Iterator[None]:
    """Occupy the share of pages."""
    with ExitStack() as stack:
        for _ in range(process.shares.pages_max):
            stack.enter_context(process.shares.pages())
        yield


@pytest.fixture
def no_waiting(settings: Settings) -> None:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0.05


@pytest.mark.parametrize("is_known", [False, True])
def test_request_with_filters_beyond_the_share_gets_a_429(api: Api, no_waiting: None, is_known: bool) -> None:
    if is_known:
        api.get()
    with filtering(api):
        refused = api.get(status="open")
        without_filters = api.get()
    admitted = api.get(status="open")

    assert refused.status_code == 429
    assert refused["Retry-After"] == "1"
    assert refused.json()["detail"].startswith("Too many requests with filters at the same time.")
    assert (without_filters.status_code, admitted.status_code) == (200, 200)


def test_share_of_filters_is_that_of_one_key(
    client: Client, api: Api, organization: Organization, no_waiting: None
) -> None:
    other = Api(client, ApiKeyFactory.create(organization=organization))

    with filtering(api):
        assert api.get(status="open").status_code == 429
        assert other.get(status="open").status_code == 200


def test_filter_without_a_thread_gets_a_503(api: Api) -> None:
    """Reads of others use the threads, so it is not the client that sends too many."""
    with ExitStack() as stack:
        for number in range(process.shares.threads_max):
            stack.enter_context(process.shares.filters(str(number)))

        refused, without_filters = api.get(status="open"), api.get()

    assert (refused.status_code, refused["Retry-After"]) == (503, "1")
    assert without_filters.status_code == 200


def test_revoked_key_beyond_the_share_gets_a_401(api: Api, no_waiting: None) -> None:
    api.get()
    type(api.key).objects.update(revoked_at="2026-01-01T00:00:00Z")

    with filtering(api):
        assert api.get(status="open").status_code == 401


def status_of(path: str, application: Any = None, /, **headers: str) -> tuple[str, dict[str, str]]:
    """Return the status and the headers of the deployed application's response."""
    answers: list[Any] = []
    environ = {**RequestFactory().get(path, headers=headers).environ, "wsgi.input": BytesIO()}
    (application or wsgi_application())(
        environ, lambda status, fields: answers.extend([status.split()[0], dict(fields)])
    )
    status, fields = answers
    return status, fields


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/login/", "/docs/openapi.json", "/docs/", "/nonsense"])
def test_pages_beyond_their_share_get_a_503(path: str) -> None:
    with responding_with_pages():
        status, headers = status_of(path)

    assert (status, headers["Retry-After"], headers["X-Content-Type-Options"]) == ("503", "1", "nosniff")
    assert int(headers["Content-Length"]) > 0
    assert status_of(path)[0] in {"200", "404"}


def test_static_files_of_a_mounted_site_need_no_place() -> None:
    application = wsgi_application()  # as at the start of a worker, before any request sets the prefix
    set_script_prefix("/pay/")
    try:
        with responding_with_pages():
            status, _ = status_of("/static/admin/css/base.css", application)
    finally:
        clear_script_prefix()

    assert status == "200"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/static/admin/css/base.css", "/healthz", "/readyz", "/v2/payments"])
def test_other_requests_are_served_while_pages_use_their_share(api: Api, path: str) -> None:
    with responding_with_pages():
        status, _ = status_of(path, **api.authorization)

    assert status == "200"
