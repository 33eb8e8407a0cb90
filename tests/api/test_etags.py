"""ETag and If-None-Match (RFC 9110, 13)."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from payments.models import AccessState, Organization, Payment
from tests.support.api import Api
from tests.support.commands import output_of
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.processes import ROOT
from tests.support.service import Service
from tests.support.sql import PAYMENT, STATE, key_and_content, key_and_revision, tables_read

pytestmark = pytest.mark.also("citus")


@pytest.fixture
def payment(organization: Organization) -> Payment:
    return PaymentFactory.create(id="pt_1", organization=organization)


PATHS = ["/v2/payments", "/v2/payments/pt_1"]


@pytest.mark.parametrize("path", PATHS)
def test_response_has_caching_headers(api: Api, payment: Payment, path: str) -> None:
    response = api.get(path)

    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Accept, Authorization"
    assert response["ETag"].startswith('"')


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', "*", " * "])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_known_etag_gets_a_304(api: Api, payment: Payment, path: str, form: str, method: str) -> None:
    etag = api.get(path)["ETag"]

    response = api.send(method, path, If_None_Match=form.format(etag))

    assert response.status_code == 304
    assert response.content == b""
    assert "Content-Length" not in response
    assert "Allow" not in response
    assert response["ETag"] == etag
    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Accept, Authorization"


# What proxies and clients make of an ETag, between its quotation marks or without them.
SUFFIXES = ["-gzip", ";gzip", "--gzip", "_br", ".gz", ":x", "+zstd", "/deflate", "-df", "-gzip-gzip", " gzip", "~1"]
FORMS = [
    *(f'"{{}}{suffix}"' for suffix in SUFFIXES),
    'W/"{}"',
    'W/"{}-gzip"',
    'w/"{}"',
    "{}",
    "{}-gzip",
    "W/{}",
    '""{}""',
    "'{}'",
    r"\"{}\"",
    r"W/\"{}-gzip\"",
    '"{}"-gzip',
    '"{}',
    '{}"',
    '"x","{}"',
    '"x" , W/"{};gzip"  ,\t"y"',
    'x, {}, "*"',
    '"{}", "{}-gzip"',
    '"gzip-{}"',
]


@pytest.mark.once
@pytest.mark.parametrize("form", FORMS)
def test_etag_survives_proxies_also_after_another_payment_changed(
    api: Api, payment: Payment, organization: Organization, form: str
) -> None:
    path = "/v2/payments?limit=1&from=pt_1"
    PaymentFactory.create(id="pt_0", organization=organization, created_at=NOON - timedelta(days=1))
    etag = api.get(path)["ETag"]
    known = form.replace("{}", etag.strip('"'))

    same_state = api.send("GET", path, If_None_Match=known)
    PaymentFactory.create(id="pt_00", organization=organization, created_at=NOON - timedelta(days=2))
    other_state = api.send("GET", path, If_None_Match=known)
    Payment.objects.filter(id="pt_1").update(description="changed")
    other_content = api.send("GET", path, If_None_Match=known)

    assert [(response.status_code, response["ETag"]) for response in (same_state, other_state)] == [(304, etag)] * 2
    assert other_content.status_code == 200


@pytest.mark.once
@pytest.mark.parametrize(
    "form",
    [
        '"{state}-{shorter}"',
        '"{state}-{shorter}-gzip"',
        '"{state}-{content}0"',
        '"{state}-{content}br"',
        '"{state}-0{content}"',
        '"{state}0-{shorter}"',
        '"{state}-"',
        '"{state}"',
        '"{content}"',
        '"{content}-{state}"',
        '"0{state}-{content}"',
        '"{shorter_state}-{content}"',
        '"{state}-gzip-{content}"',
        '"{STATE}-{CONTENT}"',
        "{content}",
    ],
)
def test_part_of_an_etag_is_unknown(api: Api, payment: Payment, form: str) -> None:
    state, content = state_and_content(api.get()["ETag"])
    parts = {"state": state, "content": content, "shorter": content[:-1], "shorter_state": state[1:]}

    known = form.format(**parts, STATE=state.upper(), CONTENT=content.upper())

    assert api.send("GET", "/v2/payments", If_None_Match=known).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_changed_payment_has_another_etag(api: Api, payment: Payment, path: str) -> None:
    etag = api.get(path)["ETag"]

    Payment.objects.filter(id="pt_1").update(description="changed")
    response = api.send("GET", path, If_None_Match=etag)

    assert response.status_code == 200
    assert response["ETag"] != etag


@pytest.mark.parametrize("tag", ["", "nonsense", '"x"', 'W/"x"', '"x*"', '"*"', '"0-0"'])
def test_unknown_etag_gets_a_200(api: Api, payment: Payment, tag: str) -> None:
    assert api.send("GET", "/v2/payments", If_None_Match=tag).status_code == 200


def test_error_has_no_etag(api: Api) -> None:
    response = api.get(limit=0)

    assert "ETag" not in response


def test_pages_that_differ_only_in_their_links_have_different_etags(
    api: Api, organization: Organization, settings: Settings
) -> None:
    for name in "abc":
        PaymentFactory.create(id=f"pt_{name}", organization=organization)
    queries: list[dict[str, str]] = [
        {},
        {"limit": "3"},
        {"limit": "4"},
        {"status": "succeeded"},
        {"status": "succeeded,open"},
        {"createdAt[gte]": "2026-01-01"},
        {"sort": "desc"},
        {"sort": "asc"},
        {"limit": "2"},
        {"limit": "2", "status": "succeeded"},
    ]

    etags_here = {api.get(**query)["ETag"] for query in queries}
    settings.PAYMENTS_PUBLIC_BASE_URL = "https://pay.example"
    etags_elsewhere = {api.get(**query)["ETag"] for query in queries}

    assert len(etags_here | etags_elsewhere) == 2 * len(queries)


def test_first_page_is_unchanged_when_it_is_requested_with_from(api: Api, organization: Organization) -> None:
    for name in "abc":
        PaymentFactory.create(id=f"pt_{name}", organization=organization)

    etag = api.get(limit=2)["ETag"]
    same, other = (api.send("GET", f"/v2/payments?limit=2&from=pt_{name}", If_None_Match=etag) for name in "cb")

    assert (same.status_code, other.status_code) == (304, 200)


def state_and_content(etag: str) -> list[str]:
    """Return the two parts of an ETag."""
    parts = etag.strip('"').split("-")
    assert len(parts) == 2, etag
    return parts


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("form", "tables"),
    [
        ("{}", key_and_revision()),
        ('"x", W/{}', key_and_revision()),
        ("*", key_and_content()),
        ('"x*"', key_and_content()),
        (f'"{"0" * 32}-{"0" * 32}"', [*key_and_revision(), {STATE, PAYMENT}]),
    ],
)
def test_known_state_needs_no_payments(
    api: Api, payment: Payment, path: str, form: str, tables: list[set[str]]
) -> None:
    etag = api.get(path)["ETag"]

    with CaptureQueriesContext(connection) as queries:
        api.send("GET", path, If_None_Match=form.format(etag))

    assert tables_read(queries) == tables


@pytest.mark.parametrize("path", ["/v2/payments?limit=1&from=pt_1", "/v2/payments/pt_1"])
def test_unchanged_response_gets_a_304_after_other_payments_changed(
    api: Api, payment: Payment, organization: Organization, path: str
) -> None:
    before = api.get(path)["ETag"]
    PaymentFactory.create(id="pt_0", organization=organization, created_at=NOON - timedelta(days=1))
    older = api.get(path)["ETag"]
    PaymentFactory.create(id="pt_00", organization=organization, created_at=NOON - timedelta(days=2))
    now = api.get(path)["ETag"]

    response = api.send("GET", path, If_None_Match=older)

    assert (response.status_code, response["ETag"]) == (304, older)
    assert state_and_content(before)[0] != state_and_content(older)[0] != state_and_content(now)[0]
    assert state_and_content(older)[1] == state_and_content(now)[1]


@pytest.mark.parametrize("path", PATHS)
def test_state_of_one_path_is_unknown_for_another(api: Api, payment: Payment, path: str) -> None:
    etags_of_others = [api.get(other)["ETag"] for other in [*PATHS, "/v2/payments?limit=19"] if other != path]

    response = api.send("GET", path, If_None_Match=", ".join(etags_of_others))

    state, _ = state_and_content(response["ETag"])
    assert state not in ",".join(etags_of_others)


def test_state_of_another_key_is_unknown(client: Client, api: Api, payment: Payment) -> None:
    """The revisions of two organizations could be the same: both are 0 before the first change."""
    AccessState.objects.update(revision=0)
    other = Api(client, ApiKeyFactory.create(organization=OrganizationFactory.create(id=2), mode="live"))

    response = other.send("GET", "/v2/payments", If_None_Match=api.get()["ETag"])

    assert response.status_code == 200


@pytest.mark.parametrize("path", [*PATHS, "/v2/payments/changes"])
@pytest.mark.parametrize(
    ("variables", "base"),
    [
        ({"HTTP_HOST": "pay.example"}, "http://pay.example"),
        ({"HTTP_HOST": "testserver:8443"}, "http://testserver:8443"),
        ({"wsgi.url_scheme": "https", "SERVER_PORT": "443"}, "https://testserver"),
        ({"SCRIPT_NAME": "/shop"}, "http://testserver/shop"),
    ],
)
@pytest.mark.usefixtures("payment")
def test_response_with_other_links_is_unknown(
    api: Api, settings: Settings, path: str, variables: dict[str, Any], base: str
) -> None:
    settings.ALLOWED_HOSTS = ["testserver", "pay.example"]
    etag = api.get(path)["ETag"]

    response = api.client.get(path, headers=api.authorization | {"If-None-Match": etag}, **variables)

    assert response.status_code == 200
    assert response.json()["_links"]["self"]["href"].startswith(f"{base}/v2/payments")


@pytest.mark.parametrize("path", PATHS)
def test_response_below_another_public_base_url_is_unknown(
    api: Api, payment: Payment, settings: Settings, path: str
) -> None:
    etag = api.get(path)["ETag"]
    settings.PAYMENTS_PUBLIC_BASE_URL = "https://pay.example"

    assert api.send("GET", path, If_None_Match=etag).status_code == 200


@pytest.mark.parametrize(("path", "status"), [("/v2/payments?limit=0", 400), ("/v2/payments?from=pt_1&limit=x", 400)])
def test_invalid_request_gets_no_304(api: Api, payment: Payment, path: str, status: int) -> None:
    etag = api.get()["ETag"]

    assert api.send("GET", path, If_None_Match=etag).status_code == status


PATHS_OF_LISTS = ["/v2/payments", "/v2/payments?status=open", "/v2/payments/changes"]


@pytest.mark.parametrize("path", [*PATHS_OF_LISTS, "/v2/payments/pt_1"])
def test_changes_of_other_organizations_and_modes_do_not_change_the_state(
    api: Api, payment: Payment, organization: Organization, path: str
) -> None:
    etag = api.get(path)["ETag"]
    PaymentFactory.create(organization=organization, test=True)
    PaymentFactory.create(organization=OrganizationFactory.create(id=2))

    with CaptureQueriesContext(connection) as queries:
        response = api.send("GET", path, If_None_Match=etag)

    assert response.status_code == 304
    assert tables_read(queries) == key_and_revision()


@pytest.mark.parametrize("path", PATHS_OF_LISTS)
@pytest.mark.parametrize("has_changed", [False, True])
def test_empty_list_has_a_state(api: Api, path: str, has_changed: bool) -> None:
    """A client that polls an empty list gets 304 without the page, even if its filter is slow."""
    if has_changed:
        AccessState.objects.record({api.key.access: [7]}, days={})
    etag = api.get(path)["ETag"]

    with CaptureQueriesContext(connection) as queries:
        response = api.send("GET", path, If_None_Match=etag)

    assert response.status_code == 304
    assert tables_read(queries) == key_and_revision()


@pytest.mark.only("postgresql", "citus")
@pytest.mark.parametrize("path", [*PATHS, "/v2/payments?status=succeeded"])
def test_change_after_the_payments_were_read_is_noticed(api: Api, payment: Payment, path: str) -> None:
    """An ETag never has a state that is newer than its payments: the response would stay unchanged for ever."""

    changed = False

    def execute_and_change(execute: Any, statement: str, *rest: Any) -> Any:
        nonlocal changed
        result = execute(statement, *rest)
        if 'FROM "payments_payment"' in statement and not changed:
            changed = True
            Payment.objects.update(description="new")
        return result

    with connection.execute_wrapper(execute_and_change):
        read = api.get(path)
    polled = api.send("GET", path, If_None_Match=read["ETag"])

    assert "new" not in read.content.decode()
    assert polled.status_code == 200


PRINT_STATE = """
import django
django.setup()
from django.test import Client
response = Client().get("/v2/payments", headers={"Authorization": "Bearer %s"})
print(response["ETag"].partition("-")[0])
"""


@pytest.mark.once
@pytest.mark.extended
@pytest.mark.processes
def test_another_release_has_another_state(tmp_path: Path) -> None:
    """It may render the same payment differently."""
    service = Service(f"sqlite:///{tmp_path}/database.sqlite3")
    service.migrate()
    service.create_organization(1)
    key = service.create_api_key(organization=1, mode="live")

    def state(release: Path) -> str:
        environment = {"DJANGO_SETTINGS_MODULE": "payments_site.settings", "ALLOWED_HOSTS": "testserver"}
        return output_of(
            [ROOT / ".venv/bin/python", "-c", PRINT_STATE % key], cwd=release, env=service.environment | environment
        )

    release = tmp_path / "release"
    for package in ("payments", "payments_site"):
        shutil.copytree(ROOT / package, release / package)
    same = state(release)
    with (release / "payments/ingest/validation.py").open("a") as module:
        module.write("# changed\n")

    assert state(ROOT) == same != state(release)
