"""Slow work of one kind or of one client uses only its share of the threads; other requests are served meanwhile."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import Any

import pytest
from django.test import Client, RequestFactory
from django.urls import clear_script_prefix, set_script_prefix
from pytest_django import Settings

from payments.models import Access, Mode
from payments.runtime import filter_places
from payments.runtime.process import process
from payments.runtime.shares import Share
from payments.service.handler import PAGES
from tests.support.api import Api
from tests.support.application import application
from tests.support.factories import ApiKeyFactory, OrganizationFactory
from tests.support.processes import ROOT


@contextmanager
def filtering(access: Access) -> Iterator[None]:
    """Occupy the place of a client's filters in this process."""
    assert process.filter_places.acquire(access)
    try:
        yield
    finally:
        process.filter_places.release(access)


@contextmanager
def occupied(share: Share, name: Any) -> Iterator[None]:
    """Occupy all places of a share."""
    with ExitStack() as stack:
        for _ in range(share.places_max):
            stack.enter_context(share.place(name))
        yield


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_places, "WAIT_SECONDS_MAX", 0)


@pytest.mark.parametrize("is_known", [False, True])
def test_request_with_filters_beyond_the_share_gets_a_429(api: Api, no_waiting: None, is_known: bool) -> None:
    if is_known:
        api.get()
    with filtering(api.key.access):
        refused = api.get(status="open")
        without_filters = api.get()
    admitted = api.get(status="open")

    assert refused.status_code == 429
    assert refused["Retry-After"] == "1"
    assert refused.json()["detail"].startswith("Too many requests with filters at the same time.")
    assert (without_filters.status_code, admitted.status_code) == (200, 200)


@pytest.mark.parametrize(("organization_id", "mode"), [(2, Mode.LIVE), (1, Mode.TEST)])
def test_share_of_filters_is_that_of_one_organization_and_mode(
    client: Client, api: Api, no_waiting: None, organization_id: int, mode: Mode
) -> None:
    organization = api.key.organization if organization_id == 1 else OrganizationFactory.create(id=organization_id)
    other = Api(client, ApiKeyFactory.create(organization=organization, mode=mode))

    with filtering(Access(1, Mode.LIVE)):
        assert api.get(status="open").status_code == 429
        assert other.get(status="open").status_code == 200


def test_revoked_key_beyond_the_share_gets_a_401(api: Api, no_waiting: None) -> None:
    api.get()
    type(api.key).objects.update(revoked_at="2026-01-01T00:00:00Z")

    with filtering(api.key.access):
        assert api.get(status="open").status_code == 401


def status_of(path: str, **headers: str) -> tuple[str, dict[str, str]]:
    """Return the status and the headers of the deployed application's response."""
    answers: list[Any] = []
    environ = {**RequestFactory().get(path, headers=headers).environ, "wsgi.input": BytesIO()}
    application()(environ, lambda status, fields: answers.extend([status.split()[0], dict(fields)]))
    status, fields = answers
    return status, fields


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/login/", "/docs/openapi.json", "/docs/", "/nonsense"])
def test_pages_beyond_their_share_get_a_503(path: str) -> None:
    with occupied(process.page_share, PAGES):
        status, headers = status_of(path)

    assert (status, headers["Retry-After"]) == ("503", "1")
    assert status_of(path)[0] in {"200", "404"}


def test_static_files_of_a_mounted_site_need_no_place() -> None:
    set_script_prefix("/pay/")
    try:
        with occupied(process.page_share, PAGES):
            status, _ = status_of("/static/admin/css/base.css")
    finally:
        clear_script_prefix()

    assert status == "200"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/static/admin/css/base.css", "/healthz", "/readyz", "/v2/payments"])
def test_other_requests_are_served_while_pages_use_their_share(api: Api, path: str) -> None:
    with occupied(process.page_share, PAGES):
        status, _ = status_of(path, **api.authorization)

    assert status == "200"


def test_pages_leave_at_least_half_of_the_threads(settings: Settings) -> None:
    share = process.page_share

    assert 0 < share.places_max + share.waiting_max <= settings.WEB_THREADS / 2


def test_client_may_use_half_of_the_workers_for_filters() -> None:
    assert process.filter_places.on_machine == 1  # the tests run in one process
    assert process.filter_places.in_process.places_max == 1


def test_filters_that_wait_leave_half_of_the_waiting_threads() -> None:
    script = (ROOT / "scripts/start").read_text()
    threads = int(re.search(r"^WAITING_THREADS=(\d+)$", script, re.MULTILINE)[1])  # type: ignore[index]

    assert process.filter_places.in_process.waiting_max == threads / 2
