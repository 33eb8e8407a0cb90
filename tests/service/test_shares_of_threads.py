"""Slow work of one kind or of one client uses only its share of the threads; other requests are served meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import clear_script_prefix, set_script_prefix

from payments.models import Organization, StaffSession
from payments.runtime import time_limits
from payments.runtime.process import process
from payments.runtime.time_limits import TimeLimit
from tests.support.api import Api, key_text, status_of, wsgi_application
from tests.support.factories import ApiKeyFactory


@contextmanager
def occupied(share: Callable[[str], AbstractContextManager[None]], places: int, *, client: str) -> Iterator[None]:
    """Occupy all places of a share."""
    with ExitStack() as stack:
        for _ in range(places):
            stack.enter_context(share(client))
        yield


def filtering(api: Api) -> AbstractContextManager[None]:
    """Occupy the share of a key for reads with filters."""
    return occupied(process.shares.filters, process.shares.filters_max, client=api.key.digest)


def responding_with_public_pages() -> AbstractContextManager[None]:
    """Occupy the share of strangers."""
    return occupied(process.shares.public_pages, process.shares.public_pages_max, client="stranger")


def responding_to_staff() -> AbstractContextManager[None]:
    """Occupy the share of users."""
    return occupied(process.shares.staff_pages, process.shares.staff_pages_max, client="user")


# A name that leaves the directory, and a compressed variant, which WhiteNoise serves under the name without `.gz`.
MISSING_FILES = (
    "/static/nonsense",
    *("/static//etc/passwd", "/static/../manage.py", "/static/docs/../docs/page.css", "/static/docs/page.css.gz"),
)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WAIT_FOR_READ", "WAIT_FOR_PAGE"):
        monkeypatch.setattr(time_limits, name, TimeLimit(0))


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
    assert refused.json()["detail"].startswith("Too many slow requests of this key at the same time.")
    assert (without_filters.status_code, admitted.status_code) == (200, 200)


@pytest.mark.parametrize("spelling", ["bearer  {}", "Bearer {}   ", "BEARER\t{}", "Bearer \xa0{}"])
def test_share_of_filters_does_not_depend_on_the_spelling_of_a_key(
    client: Client, api: Api, no_waiting: None, spelling: str
) -> None:
    authorization = spelling.format(key_text(api.key))
    with filtering(api):
        response = client.get("/v2/payments?status=open", headers={"Authorization": authorization})

    assert response.status_code == (401 if "\t" in spelling else 429)


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


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/login/", "/docs/openapi.json", "/docs/", "/nonsense", *MISSING_FILES])
def test_pages_beyond_the_share_of_strangers_get_a_503(no_waiting: None, path: str) -> None:
    with responding_with_public_pages():
        status, headers = status_of(path)

    assert (status, headers["Retry-After"], headers["X-Content-Type-Options"]) == ("503", "1", "nosniff")
    assert int(headers["Content-Length"]) > 0
    assert status_of(path)[0] in {"200", "404"}


@pytest.mark.django_db(transaction=True)
def test_pages_of_users_have_their_own_share(admin_client: Client, no_waiting: None) -> None:
    cookie = f"sessionid={admin_client.session.session_key}"
    with responding_with_public_pages():
        assert status_of("/admin/", Cookie=cookie)[0] == "200"
        assert status_of("/docs/", Cookie=cookie)[0] == "503"  # the same page for all clients
    with responding_to_staff():
        assert status_of("/admin/", Cookie=cookie)[0] == "503"
        assert status_of("/admin/login/")[0] == "200"


@pytest.mark.django_db(transaction=True)
def test_long_cookies_are_those_of_a_stranger(admin_client: Client, no_waiting: None) -> None:
    with responding_with_public_pages():
        assert (
            status_of("/admin/", Cookie=f"sessionid={admin_client.session.session_key}; {'a=b; ' * 2000}")[0] == "503"
        )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("session", ["x" * 32, "", "x", "'; --", "X" * 32, "x" * 60_000])
def test_cookie_without_a_session_is_that_of_a_stranger(no_waiting: None, session: str) -> None:
    with responding_with_public_pages():
        assert status_of("/admin/", Cookie=f"sessionid={session}")[0] == "503"
    with responding_to_staff():
        assert status_of("/admin/login/", Cookie=f"sessionid={session}")[0] == "200"


@pytest.mark.django_db(transaction=True)
def test_session_without_a_user_is_that_of_a_stranger(client: Client, no_waiting: None) -> None:
    """A session begins before the login, at the second factor and at the OpenID provider."""
    session = client.session
    session["pending"] = "1"
    session.save()

    with responding_with_public_pages():
        assert status_of("/admin/", Cookie=f"sessionid={session.session_key}")[0] == "503"


@pytest.mark.django_db(transaction=True)
def test_session_that_has_ended_is_that_of_a_stranger(admin_client: Client, no_waiting: None) -> None:
    cookie = f"sessionid={admin_client.session.session_key}"
    StaffSession.objects.update(expire_date=datetime(2026, 1, 1, tzinfo=UTC))

    with responding_with_public_pages():
        assert status_of("/admin/", Cookie=cookie)[0] == "503"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/docs/", "/docs/reference/", "/docs/search.json", "/docs/openapi.json", "/docs/interactive/"]
)
def test_proxies_may_cache_the_documentation(path: str) -> None:
    status, headers = status_of(path, Cookie=f"sessionid={'x' * 32}")

    assert (status, headers["Cache-Control"]) == ("200", "public, max-age=300")
    assert headers.keys().isdisjoint({"Vary", "Set-Cookie"})


def test_static_files_of_a_mounted_site_need_no_place() -> None:
    application = wsgi_application()  # as at the start of a worker, before any request sets the prefix
    set_script_prefix("/pay/")
    try:
        with responding_with_public_pages():
            status, _ = status_of("/static/admin/css/base.css", application)
    finally:
        clear_script_prefix()

    assert status == "200"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/static/admin/css/base.css", "/healthz", "/readyz", "/v2/payments"])
def test_other_requests_are_served_while_pages_use_their_share(api: Api, path: str) -> None:
    with responding_with_public_pages(), responding_to_staff():
        status, _ = status_of(path, **api.authorization)

    assert status == "200"
