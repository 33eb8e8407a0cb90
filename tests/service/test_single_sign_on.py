"""Sign-in at an OpenID provider, which runs as its own process."""

import json
import re
import secrets
import time
from collections.abc import Iterator
from functools import partial
from math import ceil
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, transaction
from requests import Response

from payments.admin.grants import assign_organizations, role_of, scope_of_account
from payments.admin.login import ADDRESS_ATTEMPTS
from payments.admin.scope import EVERYTHING
from payments.models import Organization, Role
from payments.runtime.process import process
from tests.support.connecting import connected_to
from tests.support.migrated import fresh_database
from tests.support.oidc import TOKEN, USER_INFO, Provider, Visitor, provider
from tests.support.password_hashing import QuickHasher
from tests.support.ports import free_port
from tests.support.relay import Answer, relayed
from tests.support.service import QUICK_PASSWORDS, Service
from tests.support.sql import execute, fetch_value
from tests.support.threads import call_while_held, in_thread, wait_until_blocked
from tests.support.waiting import SECONDS_MAX

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.processes]

PASSWORD = secrets.token_urlsafe()
HASH = make_password(PASSWORD, hasher=QuickHasher())
CLAIM = {"OIDC_REQUIRED_CLAIM": "groups=payments-staff", "OIDC_NEW_USER_GROUP": "Clerks"}
SIGN_IN_TABLES = ("socialaccount_socialaccount",)


@pytest.fixture(scope="module")
def bakery() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, bakery: Provider) -> Iterator[Service]:
    """A service that signs staff in at the provider. New users get into a group."""
    directory = tmp_path_factory.mktemp("sign_in")
    with fresh_database(directory) as url:
        settings = bakery.settings(OIDC_NEW_USER_GROUP="Clerks", WEB_THREADS="20", **QUICK_PASSWORDS)
        running = Service(url, settings=settings, log=directory / "log")
        running.manage("migrate", "--verbosity", "0")
        with running.serving():
            yield running


@pytest.fixture(autouse=True)
def accounts(service: Service, bakery: Provider) -> None:
    """Begin with a user and a group, without links to the provider, which responds correctly."""
    bakery.changes.clear()
    with connected_to(service.database_url):
        with connection.cursor() as cursor:
            for table in SIGN_IN_TABLES:
                cursor.execute(f"DELETE FROM {table}")  # noqa: S608  a name of this module
        User.objects.all().delete()
        Group.objects.exclude(name__in=Role.values).delete()
        clerks = Group.objects.create(name="Clerks")
        clerks.permissions.add(Permission.objects.get(codename="view_payment"))
        User.objects.create(username="ann", email="Ann@example.com", password=HASH, is_staff=True)


def other(service: Service, **settings: str) -> Service:
    """Return a service over the same database with other settings."""
    return Service(service.database_url, settings={**service.settings, **settings}, log=service.log)


def user_names(service: Service) -> list[str]:
    with connected_to(service.database_url):
        return list(User.objects.order_by("username").values_list("username", flat=True))


def change_user(service: Service, **values: Any) -> None:
    with connected_to(service.database_url):
        User.objects.filter(username="ann").update(**values)


def count_links(service: Service) -> int:
    """Return the number of accounts at the provider that are linked to a user."""
    with connected_to(service.database_url):
        return int(fetch_value("SELECT count(*) FROM socialaccount_socialaccount"))


def test_account_is_linked_to_the_user_with_its_address(service: Service, bakery: Provider) -> None:
    bakery.set_account("ann")
    visitor = Visitor(service)

    page = visitor.sign_in("ann")

    assert (page.status_code, page.url) == (200, f"{service.base_url}/admin/")
    assert visitor.user_name() == "ann"
    assert user_names(service) == ["ann"]


def test_linked_account_signs_in_with_a_new_address(service: Service, bakery: Provider) -> None:
    bakery.set_account("ann")
    Visitor(service).sign_in("ann")
    bakery.set_account("ann", email="ann.baker@example.org")
    visitor = Visitor(service)

    visitor.sign_in("ann")

    assert visitor.user_name() == "ann"


def test_session_gets_another_key(service: Service, bakery: Provider) -> None:
    bakery.set_account("ann")
    visitor = Visitor(service)
    form = visitor.get("/admin/sign-in/")
    before = visitor.session.cookies["sessionid"]

    visitor.session.post(form.url, {"sub": "ann"}, timeout=SECONDS_MAX)

    assert visitor.session.cookies["sessionid"] != before


def test_request_to_the_provider_has_a_state_and_a_challenge(service: Service) -> None:
    response = Visitor(service).get("/admin/sign-in/?scope=admin&process=connect", allow_redirects=False)

    query = parse_qs(urlsplit(response.headers["Location"]).query)
    assert response.status_code == 302
    assert query["redirect_uri"] == [f"{service.base_url}/admin/sign-in/callback/"]
    assert query["code_challenge_method"] == ["S256"]
    assert len(query["state"][0]) >= 16
    assert sorted(query["scope"][0].split()) == ["email", "openid", "profile"]


@pytest.mark.parametrize(
    ("next_path", "expected"),
    [
        ("/admin/password_change/", "/admin/password_change/"),
        ("https://evil.example/", "/admin/"),
        ("//evil.example/", "/admin/"),
        ("javascript:alert(1)", "/admin/"),
        (f"/admin/?{'x' * 2000}", "/admin/"),
    ],
)
def test_sign_in_continues_only_at_own_pages(service: Service, bakery: Provider, next_path: str, expected: str) -> None:
    bakery.set_account("ann")

    page = Visitor(service).sign_in("ann", next=next_path)

    assert page.url == f"{service.base_url}{expected}"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"email": "ann@evil.example"}, "The domain of your e-mail address may not sign in."),
        ({"email": "ann@example.com.evil.example"}, "The domain of your e-mail address may not sign in."),
        ({"email_verified": False}, "no verified e-mail address"),
        ({"email_verified": "false"}, "no verified e-mail address"),
        ({"email": None}, "no verified e-mail address"),
        ({"email_verified": None}, "no verified e-mail address"),
    ],
)
def test_account_without_an_allowed_address_is_refused(
    service: Service, bakery: Provider, claims: dict[str, Any], reason: str
) -> None:
    bakery.set_account("ann", **claims)
    visitor = Visitor(service)

    page = visitor.sign_in("ann")

    assert page.status_code == 403
    assert reason in page.text
    assert "no-store" in page.headers["Cache-Control"]
    assert visitor.user_name() is None


def test_linked_account_is_refused_after_it_loses_its_address(service: Service, bakery: Provider) -> None:
    bakery.set_account("ann")
    Visitor(service).sign_in("ann")
    bakery.set_account("ann", email="ann@evil.example")

    assert Visitor(service).sign_in("ann").status_code == 403


def test_new_user_gets_into_the_group(service: Service, bakery: Provider) -> None:
    bakery.set_account("bob", given_name="Bob", family_name="Baker")
    visitor = Visitor(service)

    visitor.sign_in("bob")

    with connected_to(service.database_url):
        bob = User.objects.get(username="bob@example.com")
        groups = list(bob.groups.values_list("name", flat=True))
    assert visitor.user_name() == "bob@example.com"
    assert (bob.email, bob.get_full_name()) == ("bob@example.com", "Bob Baker")
    assert (bob.is_staff, bob.is_superuser) == (True, False)
    assert groups == ["Clerks"]
    assert not bob.has_usable_password()


def test_new_user_is_refused_if_the_group_is_missing(service: Service, bakery: Provider) -> None:
    with connected_to(service.database_url):
        Group.objects.filter(name="Clerks").delete()
    bakery.set_account("bob")

    page = Visitor(service).sign_in("bob")

    assert "New users cannot sign in now." in page.text
    assert user_names(service) == ["ann"]


@pytest.mark.parametrize("values", [{"is_active": False}, {"is_staff": False}])
def test_user_who_may_not_use_the_admin_is_refused(service: Service, bakery: Provider, values: dict[str, Any]) -> None:
    change_user(service, **values)
    bakery.set_account("ann")

    page = Visitor(service).sign_in("ann")

    assert page.status_code == 403
    assert "Your user is disabled" in page.text
    assert count_links(service) == 0


def test_address_of_several_users_is_refused(service: Service, bakery: Provider) -> None:
    with connected_to(service.database_url):
        User.objects.create_user("eve", email="ann@EXAMPLE.com", is_staff=True)
    bakery.set_account("ann")

    assert "Several users have your e-mail address." in Visitor(service).sign_in("ann").text


def test_another_account_with_the_same_address_is_refused(service: Service, bakery: Provider) -> None:
    bakery.set_account("ann")
    Visitor(service).sign_in("ann")
    bakery.set_account("ann-2", email="ann@example.com")

    page = Visitor(service).sign_in("ann-2")

    assert "belongs to another account" in page.text


def test_one_of_two_accounts_that_sign_in_at_once_gets_the_user(service: Service, bakery: Provider) -> None:
    visitors = {subject: Visitor(service) for subject in ("ann", "ann-2")}
    sign_in = [partial(visitor.sign_in, subject) for subject, visitor in visitors.items()]
    for subject in visitors:
        bakery.set_account(subject, email="ann@example.com")

    with connected_to(service.database_url):
        pages = call_while_held(lambda: execute("SELECT FROM auth_user WHERE username = 'ann' FOR UPDATE"), *sign_in)

    assert sorted(page.status_code for page in pages) == [200, 403]
    assert sum("belongs to another account" in page.text for page in pages) == 1
    assert sorted(visitor.user_name() or "" for visitor in visitors.values()) == ["", "ann"]


def test_account_that_signs_in_at_once_with_two_addresses_gets_one_user(service: Service, bakery: Provider) -> None:
    pages: list[Response] = []
    signing_in = [in_thread(lambda: pages.append(Visitor(service).sign_in("ann"))) for _ in range(2)]
    with connected_to(service.database_url):
        User.objects.create(username="eve", email="eve@example.com", is_staff=True)
        with transaction.atomic():
            execute("SELECT FROM auth_user FOR UPDATE")
            for number, email in enumerate(("ann@example.com", "eve@example.com")):
                bakery.set_account("ann", email=email)
                signing_in[number].start()
                wait_until_blocked(*signing_in[: number + 1])
    for thread in signing_in:
        thread.join()

    assert sorted(page.status_code for page in pages) == [200, 403]
    assert sum("The sign-in was interrupted. Try again." in page.text for page in pages) == 1
    assert count_links(service) == 1


def test_user_name_that_is_an_address_is_not_taken_over(service: Service, bakery: Provider) -> None:
    with connected_to(service.database_url):
        User.objects.create_user("bob@example.com", is_staff=True, is_superuser=True)
    bakery.set_account("bob")
    visitor = Visitor(service)

    page = visitor.sign_in("bob")

    assert page.status_code == 403
    assert visitor.user_name() is None


@pytest.mark.parametrize(
    "query",
    ["", "?code=x", "?code=x&state=unknown", "?error=access_denied", "?state=unknown&error=server_error", "?code=%00"],
)
def test_callback_without_a_sign_in_is_refused(service: Service, query: str) -> None:
    page = Visitor(service).get(f"/admin/sign-in/callback/{query}")

    assert page.status_code == 403
    assert "The sign-in was cancelled, or it took too long. Try again." in page.text


def test_cancelled_sign_in_leads_back(service: Service) -> None:
    visitor = Visitor(service)
    form = visitor.get("/admin/sign-in/")

    page = visitor.session.post(form.url, {"action": "deny"}, timeout=SECONDS_MAX)

    assert "The sign-in was cancelled" in page.text
    assert '<a href="/admin/login/">' in page.text


def test_answer_of_the_provider_works_once(service: Service, bakery: Provider) -> None:
    bakery.set_account("ann")
    visitor = Visitor(service)
    form = visitor.get("/admin/sign-in/")
    answer = visitor.session.post(form.url, {"sub": "ann"}, timeout=SECONDS_MAX, allow_redirects=False)
    path = answer.headers["Location"].removeprefix(service.base_url)

    pages = [Visitor(service).get(path), visitor.get(path), visitor.get(path)]

    assert [page.status_code for page in pages] == [403, 200, 403]


def test_password_login_remains(service: Service) -> None:
    visitor = Visitor(service)

    page = visitor.get("/admin/login/").text
    visitor.log_in("ann", PASSWORD)

    assert "Sign in with Bakery" in page
    assert visitor.user_name() == "ann"


@pytest.mark.extended
def test_required_claim_is_checked(service: Service, bakery: Provider) -> None:
    accounts: dict[str, dict[str, Any]] = {
        "without": {},
        "other": {"groups": ["payments-staff-2", "bakers"]},
        "text": {"groups": "payments-staff"},
        "list": {"groups": ["bakers", "payments-staff"]},
    }
    for subject, claims in accounts.items():
        bakery.set_account(subject, **claims)

    with other(service, **CLAIM).serving() as running:
        pages = {subject: Visitor(running).sign_in(subject) for subject in accounts}

    statuses = {subject: page.status_code for subject, page in pages.items()}
    assert statuses == {"without": 403, "other": 403, "text": 200, "list": 200}
    assert "it lacks a role or group" in pages["without"].text
    assert user_names(service) == ["ann", "list@example.com", "text@example.com"]


def access_of(name: str) -> tuple[str | None, frozenset[int] | None]:
    user = User.objects.get(email__iexact=f"{name}@example.com")
    return role_of(user), scope_of_account(user).ids


@pytest.mark.extended
def test_claims_replace_role_and_organizations_at_each_sign_in(service: Service, bakery: Provider) -> None:
    with connected_to(service.database_url):
        Organization.objects.bulk_create(Organization(id=number, name=f"Shop {number}") for number in (7, 8))
        User.objects.create_superuser("root", email="root@example.com", password=PASSWORD)
        assign_organizations(User.objects.get(username="ann"), EVERYTHING)
    claims: list[tuple[str, dict[str, Any], int]] = [
        ("ann", {"role": "viewer", "shops": [7, "8", 999]}, 200),
        ("ann", {"role": ["key-manager", "viewer"], "shops": "all"}, 200),
        ("ann", {"role": "viewer", "shops": ["7", "x"]}, 403),
        ("ann", {"role": "owner", "shops": [7]}, 403),
        ("ann", {"role": [], "shops": 8}, 200),
        ("ann", {}, 200),
        ("root", {"role": "viewer", "shops": [7]}, 200),
        ("bob", {"shops": [7]}, 403),
        ("bob", {"role": "administrator", "shops": [7]}, 200),
    ]
    seen, texts = [], []

    settings = {"OIDC_ROLE_CLAIM": "role", "OIDC_ORGANIZATIONS_CLAIM": "shops", "OIDC_NEW_USER_GROUP": ""}
    with other(service, **settings).serving() as running, connected_to(service.database_url):
        for subject, values, status in claims:
            bakery.set_account(subject, **values)
            page = Visitor(running).sign_in(subject)
            texts.append(page.text)
            assert page.status_code == status, (subject, values, page.text)
            if status == 200:
                seen.append(access_of(subject))
        passwords = [User.objects.get(username=name).has_usable_password() for name in ("ann", "root")]
        names = set(User.objects.values_list("username", flat=True))

    everything = None
    assert seen == [
        (Role.VIEWER, {7, 8}),
        (Role.KEY_MANAGER, everything),
        (None, {8}),
        (None, frozenset()),
        (None, frozenset()),  # a superuser keeps what the admin has stored
        (Role.ADMINISTRATOR, {7}),
    ]
    assert "an organization that is no ID: x." in texts[2]
    assert "a role that is unknown here: owner." in texts[3]
    assert "Your user ann may not view payments. Ask an administrator" in texts[4]
    assert "sees no organization yet. Ask an administrator" in texts[5]
    assert passwords == [False, True]
    assert names == {"ann", "root", "bob@example.com"}
    assert service.log is not None
    assert "Ignored unknown organizations in the claims of user" in service.log.read_text()


@pytest.mark.extended
def test_service_without_passwords_and_new_users(service: Service, bakery: Provider) -> None:
    old_session = Visitor(service)
    old_session.log_in("ann", PASSWORD)
    bakery.set_account("ann")
    bakery.set_account("bob")

    with other(service, PASSWORD_LOGIN="off", OIDC_NEW_USER_GROUP="").serving() as running:
        old_session.service = running
        visitor, unknown = Visitor(running), Visitor(running)
        form = visitor.get("/admin/login/").text
        forged = visitor.post("/admin/login/", username="ann", password=PASSWORD)
        visitor.sign_in("ann")
        refused = unknown.sign_in("bob")
        names = [visitor.user_name(), unknown.user_name(), old_session.user_name()]
        start_page = visitor.get("/admin/").text
        change = visitor.get("/admin/password_change/").status_code

    assert 'name="password"' not in form
    assert forged.status_code == 403
    assert names == ["ann", None, None]
    assert "No user has your e-mail address." in refused.text
    assert "Change password" not in start_page
    assert change == 404
    assert user_names(service) == ["ann"]


@pytest.mark.extended
@pytest.mark.parametrize("issuer", ["down", "other", "broken"])
def test_provider_that_fails_leads_to_a_page(service: Service, bakery: Provider, issuer: str) -> None:
    issuers = {
        "down": f"http://localhost:{free_port()}",
        "other": f"{bakery.issuer}/",  # its configuration has the issuer without the slash
        "broken": f"{bakery.issuer}/unknown",
    }

    with other(service, OIDC_ISSUER=issuers[issuer]).serving() as running:
        visitor = Visitor(running)
        page = visitor.get("/admin/sign-in/")
        visitor.log_in("ann", PASSWORD)
        name = visitor.user_name()

    assert page.status_code == 502
    assert "does not respond correctly" in page.text
    assert "Traceback" not in page.text
    assert name == "ann"


@pytest.mark.parametrize(
    "email",
    [
        *("a@evil.example@example.com", '"a@evil.example"@example.com', '"\x01"@example.com', "@example.com", "ann@"),
        *(" ann@example.com", "ann@example.com ", "ann@example.com\n", "a\nb@example.com", "a\0@example.com"),
        *("ann@example.com.", "ann@.example.com", "ann@example.com@", "ann@ex\u00adample.com", "<b>@example.com"),
        *(
            "\u202eann@example.com",
            "\u0430nn@example.com",
            "ann@EXAMPLE\u3002com",
            "ann@\u212apple.com",
            "a b@example.com",
        ),
        *(
            "x" * 300 + "@example.com",
            "x" * 243 + "@example.com",
            ["ann@example.com"],
            {"ann@example.com": 1},
            7,
            True,
            "",
        ),
    ],
)
@pytest.mark.extended
def test_address_that_is_no_plain_address_is_refused(service: Service, bakery: Provider, email: Any) -> None:
    bakery.set_members(USER_INFO, email=email)
    bakery.set_account("ann")

    page = Visitor(service).sign_in("ann")

    assert page.status_code == 403
    assert user_names(service) == ["ann"]


@pytest.mark.parametrize(
    "email", ["o'brien@example.com", "x" * 150 + "@example.com", "100%@example.com", "ANN2@example.com"]
)
def test_user_is_created_only_with_a_name_that_the_admin_accepts(
    service: Service, bakery: Provider, email: str
) -> None:
    with connected_to(service.database_url):
        User.objects.create(username="ann2@example.com", email="ann@example.org", is_staff=True)
    bakery.set_members(USER_INFO, email=email)
    bakery.set_account("bob")

    page = Visitor(service).sign_in("bob")

    assert page.status_code == 403
    assert user_names(service) == ["ann", "ann2@example.com"]


def test_address_that_is_no_user_name_is_linked_to_its_user(service: Service, bakery: Provider) -> None:
    change_user(service, email="o'brien@example.com")
    bakery.set_account("ann", email="O'Brien@example.com")
    visitor = Visitor(service)

    visitor.sign_in("ann")

    assert visitor.user_name() == "ann"


@pytest.mark.parametrize(
    ("given_name", "expected"),
    [
        (" Bob\u202e\n\0\ud800 \u200bB. ", "Bob B."),
        ("x" * 1000, "x" * 150),
        (["Bob"], ""),
        (None, ""),
    ],
)
def test_names_of_a_new_user_are_one_short_line(
    service: Service, bakery: Provider, given_name: Any, expected: str
) -> None:
    bakery.set_members(USER_INFO, given_name=given_name, family_name=given_name)
    bakery.set_account("bob")

    Visitor(service).sign_in("bob")

    with connected_to(service.database_url):
        bob = User.objects.get(username="bob@example.com")
    assert (bob.first_name, bob.last_name) == (expected, expected)


def test_address_of_one_document_is_not_verified_by_the_other(service: Service, bakery: Provider) -> None:
    bakery.set_account("eve")
    bakery.set_members(USER_INFO, email="ann@example.com")

    assert Visitor(service).sign_in("eve").status_code == 403
    assert count_links(service) == 0


def test_only_used_claims_are_stored(service: Service, bakery: Provider) -> None:
    bakery.set_account("ann", given_name="Ann", address={"street": "1 Mill Lane"}, picture="x" * 10_000)

    Visitor(service).sign_in("ann")

    with connected_to(service.database_url):
        stored = json.loads(fetch_value("SELECT extra_data::text FROM socialaccount_socialaccount"))
    names = {"email": "ann@example.com", "given_name": "Ann", "family_name": ""}
    assert stored == {**names, "has_required_claim": True, "roles": [], "organizations": []}


NOW = int(time.time())

# Claims of an ID token that is for another client, too old, or not yet valid, or that has another type.
INVALID_ID_TOKENS: dict[str, dict[str, Any]] = {
    "other audience": {"aud": "evil"},
    "other party": {"aud": ["evil", "payments"], "azp": "evil"},
    "two audiences without a party": {"aud": ["evil", "payments"]},
    "one audience with another party": {"azp": "evil"},
    "empty party": {"azp": None},
    "list of parties": {"azp": ["payments"]},
    "audience in an object": {"aud": {"payments": 1}},
    "audience of numbers": {"aud": ["payments", 7]},
    "no audience": {"without": "aud"},
    "other issuer": {"iss": "https://evil.example"},
    "list of issuers": {"iss": ["https://evil.example"]},
    "no issuer": {"without": "iss"},
    "expired": {"exp": NOW - 10},
    "no expiry": {"without": "exp"},
    "expiry as a text": {"exp": str(NOW + 3600)},
    "expiry true": {"exp": True},
    "endless": {"exp": float("inf")},
    "expiry that is no number": {"exp": float("nan")},
    "issued in a year": {"iat": NOW + 31_536_000},
    "issued yesterday": {"iat": NOW - 86_400},
    "issued never": {"iat": float("nan")},
    "no time of issue": {"without": "iat"},
    "time of issue as a text": {"iat": str(NOW)},
    "time of issue in a list": {"iat": [NOW]},
    "not valid yet": {"nbf": NOW + 31_536_000},
    "other nonce": {"nonce": "x" * 64},
    "no nonce": {"without": "nonce"},
    "list of nonces": {"nonce": ["x"]},
    "no algorithm": {"header": {"alg": "none"}},
    "unknown algorithm": {"header": {"alg": "nOnE"}},
    "list of algorithms": {"header": {"alg": ["RS256"]}},
    "empty algorithm": {"header": {"alg": ""}},
    "other subject": {"sub": "eve"},
    "no subject": {"without": "sub"},
}


@pytest.mark.parametrize("changes", INVALID_ID_TOKENS.values(), ids=INVALID_ID_TOKENS.keys())
@pytest.mark.extended
def test_invalid_id_token_is_refused(service: Service, bakery: Provider, changes: dict[str, Any]) -> None:
    bakery.set_account("ann")
    bakery.set_id_token(**changes)
    visitor = Visitor(service)

    page = visitor.sign_in("ann")

    assert page.status_code == 502
    assert "does not respond correctly" in page.text
    assert visitor.user_name() is None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": ["payments"]},
        {"aud": ["payments", "other"], "azp": "payments"},
        {"azp": "payments"},
        {"header": {"alg": "ES256"}},
    ],
)
def test_valid_id_token_is_accepted(service: Service, bakery: Provider, changes: dict[str, Any]) -> None:
    bakery.set_account("ann")
    bakery.set_id_token(**changes)
    visitor = Visitor(service)

    visitor.sign_in("ann")

    assert visitor.user_name() == "ann"


def test_id_token_may_be_five_minutes_old(service: Service, bakery: Provider) -> None:
    now = time.time()
    bakery.set_account("ann")
    bakery.set_id_token(iat=now - 300.5, nbf=int(now) - 300)
    visitor = Visitor(service)

    visitor.sign_in("ann")

    assert visitor.user_name() == "ann"


@pytest.mark.parametrize(
    ("subject", "status"),
    [
        ("x" * 191, 200),
        *(("x" * 192, 502), ("x" * 10_000, 502), ("", 502), ("\0", 502), ("\u0430nn", 502), ("a\nb", 502)),
        *((7, 502), (True, 502), (None, 502), (["ann"], 502), ({}, 502), ("\ud800", 502)),
    ],
)
@pytest.mark.extended
def test_subject_has_a_length_and_a_type(service: Service, bakery: Provider, subject: Any, status: int) -> None:
    bakery.set_account("ann")
    bakery.set_id_token(sub=subject)
    bakery.set_members(USER_INFO, sub=subject)

    assert Visitor(service).sign_in("ann").status_code == status


def test_id_token_of_another_sign_in_is_refused(service: Service, bakery: Provider) -> None:
    """The provider binds an ID token to a session by the nonce, which works once."""
    answers: list[Answer] = []

    def repeat_first(answer: Answer) -> Answer:
        answers.append(answer)
        return answers[0]

    bakery.set_account("ann")
    bakery.changes[TOKEN] = repeat_first
    Visitor(service).sign_in("ann")
    visitor = Visitor(service)

    page = visitor.sign_in("ann")

    assert page.status_code == 502
    assert visitor.user_name() is None


OPAQUE = "opaque-access-token-17"

# Answers that are no OpenID Connect, by their path.
STRANGE_ANSWERS: dict[str, tuple[str, Answer]] = {
    "token refused": (TOKEN, Answer(400, {}, b'{"error": "invalid_client", "access_token": "%s"}')),
    "token as an error": (TOKEN, Answer(400, {}, b'{"error": "%s"}')),
    "token in a text": (TOKEN, Answer(200, {"Content-Type": "text/plain"}, b"%s")),
    "token with a line break": (TOKEN, Answer(200, {}, b'{"access_token": "%s\\r\\nX: y", "id_token": "a.b.c"}')),
    "token in a list": (TOKEN, Answer(200, {}, b'{"access_token": ["%s"]}')),
    "list of tokens": (TOKEN, Answer(200, {}, b'["access_token", "%s"]')),
    "ID token without parts": (TOKEN, Answer(200, {}, b'{"access_token": "x", "id_token": "%s"}')),
    "ID token in an object": (TOKEN, Answer(200, {}, b'{"access_token": "x", "id_token": {"%s": 1}}')),
    "endless token": (TOKEN, Answer(200, {}, b'{"access_token": "%s", "expires_in": 1e400}')),
    "late token": (TOKEN, Answer(200, {}, b'{"access_token": "%s", "expires_in": 1e20}')),
    "nested token": (TOKEN, Answer(200, {}, b'{"access_token": "%s", "x": ' + b"[" * 100_000)),
    "no token": (TOKEN, Answer(200, {}, b"{}")),
    "redirected token": (TOKEN, Answer(302, {"Location": "/%s"}, b"")),
    "user info refused": (USER_INFO, Answer(401, {}, b'{"error": "%s"}')),
    "user info of a list": (USER_INFO, Answer(200, {}, b'["%s"]')),
    "user info of nothing": (USER_INFO, Answer(200, {}, b"null")),
    "user info in another encoding": (USER_INFO, Answer(200, {}, b'{"sub": "%s\xff"}')),
    "nested user info": (USER_INFO, Answer(200, {}, b'{"sub": ' + b"[" * 100_000)),
    "long number": (USER_INFO, Answer(200, {}, b'{"sub": "ann", "x": ' + b"7" * 100_000 + b"}")),
    "long user info": (USER_INFO, Answer(200, {}, b'{"sub": "%s", "x": "' + b"x" * 10_000_000 + b'"}')),
    "unfinished user info": (USER_INFO, Answer(200, {"Transfer-Encoding": "chunked"}, b'{"sub": "%s"')),
}


@pytest.mark.parametrize(("path", "answer"), STRANGE_ANSWERS.values(), ids=STRANGE_ANSWERS.keys())
@pytest.mark.extended
def test_strange_answer_is_no_server_error_and_is_not_logged(
    service: Service, bakery: Provider, path: str, answer: Answer
) -> None:
    bakery.set_account("ann")
    body = answer.body.replace(b"%s", OPAQUE.encode())
    headers = {"Content-Type": "application/json", **answer.headers}
    bakery.changes[path] = lambda _correct: Answer(answer.status, headers, body)
    visitor = Visitor(service)

    page = visitor.sign_in("ann")

    assert page.status_code == 502
    assert visitor.user_name() is None
    assert service.log is not None
    assert OPAQUE not in service.log.read_text()


def test_log_has_the_status_and_the_code_of_an_error(service: Service, bakery: Provider) -> None:
    bakery.set_account("ann")
    bakery.changes[TOKEN] = lambda _answer: Answer(400, {}, b'{"error": "invalid_client"}')

    Visitor(service).sign_in("ann")

    assert service.log is not None
    assert "The OpenID provider failed: It responded with status 400 (invalid_client)." in service.log.read_text()


@pytest.mark.extended
def test_slow_provider_uses_up_no_time_of_the_database(service: Service, bakery: Provider) -> None:
    def wait(_number: int) -> None:
        time.sleep(2.5)

    with (
        relayed(bakery.port, before=wait) as issuer,
        other(service, OIDC_ISSUER=issuer, REQUEST_SECONDS_MAX="2").serving() as running,
    ):
        response = Visitor(running).get("/admin/sign-in/", allow_redirects=False)

    assert response.status_code == 302
    assert response.headers["Location"].startswith(f"{issuer}/oauth2/authorize?")


def test_address_can_begin_a_limited_number_of_sign_ins(service: Service) -> None:
    for _ in range(ADDRESS_ATTEMPTS.events_max):
        process.rate_limits.count("sign-in 127.0.0.1", ADDRESS_ATTEMPTS)

    page = Visitor(service).get("/admin/sign-in/")

    assert page.status_code == 429
    wait_seconds = int(page.headers["Retry-After"])
    assert 0 < wait_seconds <= ADDRESS_ATTEMPTS.seconds
    assert f"Too many sign-ins from your address. Try again in {ceil(wait_seconds / 60)} min." in page.text


@pytest.mark.parametrize("path", ["/accounts/login/", "/accounts/signup/", "/admin/account/emailaddress/"])
def test_other_pages_of_allauth_do_not_exist(service: Service, path: str) -> None:
    with connected_to(service.database_url):
        User.objects.filter(username="ann").update(is_superuser=True)
    visitor = Visitor(service)
    visitor.log_in("ann", PASSWORD)

    assert visitor.get(path).status_code == 404
    assert not re.search(r"/admin/(account|socialaccount|mfa)/", visitor.get("/admin/").text)


def test_log_contains_no_secret(service: Service, bakery: Provider) -> None:
    bakery.set_account("ann", email="ann@evil.example")
    Visitor(service).sign_in("ann")

    assert service.log is not None
    log = service.log.read_text()
    assert "Refused a sign-in of the account ann:" in log
    assert "client-secret-of-the-tests" not in log
