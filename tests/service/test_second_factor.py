"""The second factor of logins with a password: codes of an authenticator app, and recovery codes."""

import re
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings
from requests import Response

from payments.admin.grants import assign_organizations, assign_role
from payments.admin.login import ACCOUNT_ATTEMPTS, ADDRESS_ATTEMPTS
from payments.admin.scope import EVERYTHING, Scope
from payments.admin.sessions import SessionStore
from payments.models import Role
from payments.runtime.process import process
from payments.runtime.rate_limits import RateLimit
from tests.support.authenticator_app import App
from tests.support.connecting import connected_to
from tests.support.migrated import fresh_database
from tests.support.oidc import Visitor
from tests.support.password_hashing import QuickHasher
from tests.support.service import QUICK_PASSWORDS, Service
from tests.support.sql import execute, locked
from tests.support.threads import call_while_held

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.processes]

PASSWORD = secrets.token_urlsafe()
HASH = make_password(PASSWORD, hasher=QuickHasher())
CLICKS = 4
CODE, SET_UP, CHANGE = "/admin/second-factor/", "/admin/second-factor/set-up/", "/admin/second-factor/change/"
WRONG = "This code is wrong, or it was used already."


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose staff can have a second factor."""
    directory = tmp_path_factory.mktemp("second_factor")
    with fresh_database(directory) as url:
        settings = {"SECOND_FACTOR": "optional", "WEB_THREADS": "20", **QUICK_PASSWORDS}
        running = Service(url, settings=settings, workers=2, log=directory / "log")
        running.manage("migrate", "--verbosity", "0")
        with running.serving():
            yield running


@pytest.fixture(scope="module")
def strict(service: Service) -> Iterator[Service]:
    """A service over the same database that requires a second factor."""
    settings = {"SECOND_FACTOR": "required", **QUICK_PASSWORDS}
    with Service(service.database_url, settings=settings, log=service.log).serving() as running:
        yield running


@pytest.fixture(autouse=True)
def ann(service: Service) -> None:
    """Begin with a user without a second factor."""
    with connected_to(service.database_url):
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM mfa_authenticator")
        User.objects.all().delete()
        User.objects.create(username="ann", password=HASH, is_staff=True)


def logged_in(service: Service) -> Visitor:
    visitor = Visitor(service)
    visitor.log_in("ann", PASSWORD)
    return visitor


def set_up(visitor: Visitor) -> tuple[App, list[str]]:
    """Set up the second factor. Return the app and the recovery codes."""
    [secret] = re.findall(r'<code class="url">([A-Z2-7 ]+)</code>', visitor.get(SET_UP).text)
    app = App(secret)
    page = visitor.submit(SET_UP, code=app.code())
    recovery_codes = re.findall(r"<li><code>(\d{8})</code></li>", page.text)
    assert len(set(recovery_codes)) == 10, page.text
    return app, recovery_codes


def enter(service: Service, code: str) -> Visitor:
    """Log in with the password and a code."""
    visitor = logged_in(service)
    visitor.submit(CODE, code=code)
    return visitor


def administrator_of(service: Service, *, organization_id: int | None = None) -> tuple[str, Visitor]:
    """Return the page that resets the second factor of Ann, and the session of an administrator."""
    with connected_to(service.database_url):
        boss = User.objects.create(username="boss", password=HASH, is_staff=True)
        assign_role(boss, Role.ADMINISTRATOR)
        scope = EVERYTHING if organization_id is None else Scope(frozenset([organization_id]))
        assign_organizations(boss, scope)
        reset = f"/admin/auth/user/{User.objects.get(username='ann').pk}/reset-second-factor/"
    visitor = Visitor(service)
    visitor.log_in("boss", PASSWORD)
    return reset, visitor


def send_at_once(service: Service, locked: str, *requests: Callable[[], Response]) -> list[Response]:
    """Send requests that all wait for the rows of this query at the same time. Return the responses."""
    with connected_to(service.database_url):
        return call_while_held(lambda: execute(f"{locked} FOR UPDATE"), *requests)


@pytest.mark.extended
def test_session_that_cannot_be_written_gets_503(service: Service) -> None:
    visitor = logged_in(service)

    with connected_to(service.database_url), locked("payments_staffsession"):
        response = visitor.get(SET_UP)

    assert (response.status_code, response.headers.get("Retry-After")) == (503, "1")
    assert visitor.get(SET_UP).status_code == 200


def test_user_without_a_second_factor_logs_in_with_the_password(service: Service) -> None:
    assert logged_in(service).user_name() == "ann"


def test_code_is_needed_after_the_set_up(service: Service) -> None:
    app, _ = set_up(logged_in(service))
    visitor = Visitor(service)

    page = visitor.log_in("ann", PASSWORD, next_path="/admin/password_change/")
    before = visitor.user_name()
    key = visitor.session.cookies["sessionid"]
    code = app.code()
    last = visitor.submit(CODE, code=f" {code[:3]} {code[3:]}")

    assert page.url == f"{service.base_url}{CODE}"
    assert before is None
    assert last.url == f"{service.base_url}/admin/password_change/"
    assert visitor.user_name() == "ann"
    assert visitor.session.cookies["sessionid"] != key


def test_wrong_code_does_not_log_in(service: Service) -> None:
    app, _ = set_up(logged_in(service))
    visitor = logged_in(service)

    page = visitor.submit(CODE, code=app.wrong_code())

    assert WRONG in page.text
    assert visitor.user_name() is None


@pytest.mark.parametrize("code", ["", "x" * 21, "\0", "\u0661\u0662\u0663\u0664\u0665\u0666"])
def test_invalid_code_does_not_log_in(service: Service, code: str) -> None:
    set_up(logged_in(service))
    visitor = logged_in(service)

    page = visitor.submit(CODE, code=code)

    assert page.status_code == 200
    assert 'class="errornote"' in page.text
    assert visitor.user_name() is None


def test_code_works_once(service: Service) -> None:
    """The workers share the database, so the code does not work in another worker either."""
    app, _ = set_up(logged_in(service))
    code = app.code()

    names = [enter(service, code).user_name() for _ in range(4)]

    assert names == ["ann", None, None, None]


def test_code_of_the_set_up_does_not_log_in(service: Service) -> None:
    app, _ = set_up(logged_in(service))

    assert enter(service, app.last_code()).user_name() is None


def test_recovery_code_works_once(service: Service) -> None:
    _, [code, *_] = set_up(logged_in(service))

    assert [enter(service, code).user_name() for _ in range(2)] == ["ann", None]


def test_page_after_a_recovery_code_says_how_many_are_left(service: Service) -> None:
    app, [code, *_] = set_up(logged_in(service))

    pages = [logged_in(service).submit(CODE, code=text).text for text in (code, app.code())]

    assert ["You used a recovery code: 9 are left." in page for page in pages] == [True, False]


def test_administrator_resets_the_second_factor_of_a_user(service: Service) -> None:
    set_up(ann := logged_in(service))
    reset, reader = administrator_of(service)

    page = reader.get(reset.removesuffix("reset-second-factor/") + "change/").text
    forged = reader.post(reset)
    before = ann.user_name()
    done = reader.submit(reset)

    assert re.search(r"Set up on [0-9-]{10}, 10 recovery codes left\.", page)
    assert f'href="{reset}"' in page
    assert (forged.status_code, before) == (403, "ann")
    assert "The second factor of ann is removed, and the sessions have ended." in done.text
    assert ann.user_name() is None
    assert logged_in(service).user_name() == "ann"
    with connected_to(service.database_url):
        assert LogEntry.objects.get().change_message == "Reset the second factor."


def test_second_factor_of_a_foreign_user_is_not_reset(service: Service) -> None:
    set_up(logged_in(service))
    reset, reader = administrator_of(service, organization_id=7)
    unknown = re.sub("[0-9]+", "1000000000", reset)
    token = str(reader.session.cookies["csrftoken"])

    responses = [reader.post(path, csrfmiddlewaretoken=token) for path in (reset, unknown)]
    responses += [reader.get(path) for path in (reset, unknown)]

    texts = {re.sub("<code>[0-9a-f]{32}</code>", "", response.text) for response in responses}
    assert [response.status_code for response in responses] == [404] * 4
    assert len(texts) == 1


def test_own_second_factor_needs_a_code(service: Service) -> None:
    visitor = logged_in(service)
    set_up(visitor)
    with connected_to(service.database_url):
        ann = User.objects.get()
        User.objects.update(is_superuser=True)

    page = visitor.get(f"/admin/auth/user/{ann.pk}/reset-second-factor/")

    assert page.url == f"{service.base_url}{CHANGE}"


@pytest.mark.parametrize("kind", ["totp", "recovery_codes"])
def test_code_that_is_sent_twice_at_once_works_once(service: Service, kind: str) -> None:
    app, recovery_codes = set_up(logged_in(service))
    code = app.code() if kind == "totp" else recovery_codes[0]
    visitors = [logged_in(service) for _ in range(2)]
    submit = [partial(visitor.submit, CODE, code=code) for visitor in visitors]

    pages = send_at_once(service, f"SELECT FROM mfa_authenticator WHERE type = '{kind}'", *submit)

    assert sum(visitor.user_name() == "ann" for visitor in visitors) == 1
    assert sum(WRONG in page.text for page in pages) == 1


def test_codes_that_are_renewed_twice_at_once_are_those_of_one_page(service: Service) -> None:
    visitors = [logged_in(service) for _ in range(2)]
    app, recovery_codes = set_up(visitors[0])
    visitors[1] = enter(service, app.code())
    codes = recovery_codes[:2]
    renew = [
        partial(visitor.submit, CHANGE, code=code, renew="") for visitor, code in zip(visitors, codes, strict=True)
    ]

    pages = send_at_once(service, "SELECT FROM auth_user", *renew)

    new_codes = [re.findall(r"<li><code>(\d{8})</code></li>", page.text) for page in pages]
    assert [len(set(page_codes)) for page_codes in new_codes] == [10, 10]
    assert sorted(enter(service, page_codes[0]).user_name() or "" for page_codes in new_codes) == ["", "ann"]


def test_attempts_of_a_user_are_limited_from_all_addresses(service: Service) -> None:
    app, _ = set_up(logged_in(service))
    visitor = logged_in(service)
    wrong = app.wrong_code()

    # The code of the set-up was the first attempt.
    pages = [visitor.submit(CODE, code=wrong) for _ in range(ACCOUNT_ATTEMPTS.events_max - 1)]
    last = visitor.submit(CODE, code=app.code())

    assert {page.status_code for page in pages} == {200}
    assert last.status_code == 429
    assert int(last.headers["Retry-After"]) > 0
    assert "Too many attempts. Try again in" in last.text
    assert visitor.user_name() is None


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("code 127.0.0.1", ADDRESS_ATTEMPTS),
        ("code of user {user}", ACCOUNT_ATTEMPTS),
        ("codes of a day of user {user}", RateLimit(50, seconds=86_400)),
    ],
)
def test_attempts_of_an_address_and_of_a_user_are_limited(service: Service, name: str, limit: RateLimit) -> None:
    app, _ = set_up(logged_in(service))
    visitor = logged_in(service)
    with connected_to(service.database_url):
        user = User.objects.get().pk
    for _ in range(limit.events_max):
        process.rate_limits.count(name.format(user=user), limit)

    page = visitor.submit(CODE, code=app.code())

    assert page.status_code == 429
    assert visitor.user_name() is None


def test_set_up_that_is_sent_twice_at_once_is_no_server_error(service: Service) -> None:
    visitor = logged_in(service)
    [secret] = re.findall(r'<code class="url">([A-Z2-7 ]+)</code>', visitor.get(SET_UP).text)
    token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', visitor.get(SET_UP).text)[0]
    code = App(secret).code()

    with ThreadPoolExecutor(CLICKS) as clicks:
        pages = list(clicks.map(lambda _: visitor.post(SET_UP, csrfmiddlewaretoken=token, code=code), range(CLICKS)))

    assert {page.status_code for page in pages} <= {200, 429}
    assert sum("Save your recovery codes" in page.text for page in pages) == 1


def test_set_up_ends_sessions_that_began_without_it(service: Service) -> None:
    visitor, other = logged_in(service), logged_in(service)

    set_up(visitor)

    assert (visitor.user_name(), other.user_name()) == ("ann", None)


def test_set_up_without_recovery_codes_is_undone(service: Service) -> None:
    visitor = logged_in(service)
    [secret] = re.findall(r'<code class="url">([A-Z2-7 ]+)</code>', visitor.get(SET_UP).text)

    with connected_to(service.database_url):
        execute("ALTER TABLE mfa_authenticator ADD CONSTRAINT no_codes CHECK (type <> 'recovery_codes')")
        try:
            visitor.submit(SET_UP, code=App(secret).code())
        finally:
            execute("ALTER TABLE mfa_authenticator DROP CONSTRAINT no_codes")

        assert execute("SELECT type FROM mfa_authenticator") == []


def test_password_alone_cannot_replace_the_second_factor(service: Service) -> None:
    set_up(logged_in(service))
    visitor = logged_in(service)

    pages = [visitor.get(path) for path in (SET_UP, CHANGE)]

    assert [page.url for page in pages] == [f"{service.base_url}{CODE}"] * 2
    assert visitor.user_name() is None


def test_pages_need_a_login(service: Service) -> None:
    visitor = Visitor(service)

    addresses = {visitor.get(path).url for path in (CODE, SET_UP, CHANGE)}

    assert addresses == {f"{service.base_url}/admin/login/"}


def test_changed_password_ends_the_login_that_waits_for_a_code(service: Service) -> None:
    app, _ = set_up(logged_in(service))
    visitor = logged_in(service)
    with connected_to(service.database_url):
        user = User.objects.get()
        user.set_password("another-password-7")
        user.save()

    page = visitor.get(CODE)
    visitor.post(CODE, code=app.code(), csrfmiddlewaretoken=visitor.session.cookies.get("csrftoken") or "")

    assert page.url == f"{service.base_url}/admin/login/"
    assert visitor.user_name() is None


@pytest.mark.parametrize("values", [{"is_active": False}, {"is_staff": False}])
def test_login_that_waits_for_a_code_ends_with_the_users_rights(service: Service, values: dict[str, bool]) -> None:
    set_up(logged_in(service))
    visitor = logged_in(service)
    with connected_to(service.database_url):
        User.objects.update(**values)

    assert visitor.get(CODE).url == f"{service.base_url}/admin/login/"


@pytest.mark.parametrize(("age", "path"), [(570, CODE), (600, "/admin/login/")])
def test_login_waits_ten_minutes_for_a_code(service: Service, settings: Settings, age: int, path: str) -> None:
    settings.SECRET_KEY = service.environment["SECRET_KEY"]  # of the session
    set_up(logged_in(service))
    visitor = logged_in(service)
    with connected_to(service.database_url):
        session = SessionStore(visitor.session.cookies["sessionid"])
        session["pending_login"]["at"] -= age
        session.save()

    assert visitor.get(CODE).url == f"{service.base_url}{path}"


def test_login_that_waits_for_a_code_ends_the_session_of_another_user(service: Service) -> None:
    set_up(logged_in(service))
    with connected_to(service.database_url):
        User.objects.create(username="bob", password=HASH, is_staff=True)
    visitor = Visitor(service)
    visitor.log_in("bob", PASSWORD)
    before = visitor.user_name()

    visitor.log_in("ann", PASSWORD)

    assert (before, visitor.user_name()) == ("bob", None)


def test_form_of_another_site_is_refused(service: Service) -> None:
    app, _ = set_up(logged_in(service))
    visitor = logged_in(service)

    assert visitor.post(CODE, code=app.code()).status_code == 403


def test_second_factor_is_removed_with_a_code(service: Service) -> None:
    visitor = logged_in(service)
    app, _ = set_up(visitor)

    wrong = visitor.submit(CHANGE, code=app.last_code(), remove="")
    needs_code = logged_in(service).user_name()
    visitor.submit(CHANGE, code=app.code(), remove="")

    assert WRONG in wrong.text
    assert needs_code is None
    assert logged_in(service).user_name() == "ann"


def test_new_recovery_codes_replace_the_old_ones(service: Service) -> None:
    visitor = logged_in(service)
    app, old = set_up(visitor)

    page = visitor.submit(CHANGE, code=app.code(), renew="")

    new = re.findall(r"<li><code>(\d{8})</code></li>", page.text)
    assert len(set(new) - set(old)) == 10
    assert "no-store" in page.headers["Cache-Control"]
    assert [enter(service, code).user_name() for code in (old[0], new[0])] == [None, "ann"]


@pytest.mark.extended
def test_command_removes_the_second_factor_of_a_user(service: Service) -> None:
    set_up(logged_in(service))

    done = service.run("reset_sign_in", "ann")
    unknown = service.run("reset_sign_in", "eve")

    assert "The second factor of ann is removed." in done.stderr
    assert (unknown.returncode, unknown.stderr) == (1, "CommandError: There is no user eve.\n")
    assert logged_in(service).user_name() == "ann"


def test_required_second_factor_is_set_up_before_the_login(strict: Service) -> None:
    visitor = Visitor(strict)

    page = visitor.log_in("ann", PASSWORD)
    before = visitor.user_name()
    app, _ = set_up(visitor)
    removal = visitor.submit(CHANGE, code=app.code(), remove="")

    assert page.url == f"{strict.base_url}{SET_UP}"
    assert before is None
    assert visitor.user_name() == "ann"
    assert "Save your recovery codes" in removal.text  # it was renewed, not removed
    assert logged_in(strict).user_name() is None


def test_session_from_before_the_setting_ends(service: Service, strict: Service) -> None:
    visitor = logged_in(service)
    before = visitor.user_name()
    visitor.service = strict

    assert (before, visitor.user_name()) == ("ann", None)
