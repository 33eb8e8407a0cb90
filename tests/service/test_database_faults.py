"""A page that cannot write responds with 503 and Retry-After, and logs one line."""

import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.signals import post_save
from django.test import RequestFactory
from pytest_django import Settings

from payments.admin.keys import ApiKeyForm
from payments.models import SavedFilter, StaffSession
from tests.support.admin_site import KEY, Staff, create_objects
from tests.support.api import call_wsgi, wsgi_application
from tests.support.log import Log, collected_log
from tests.support.sql import locked

pytestmark = pytest.mark.django_db(transaction=True)

PASSWORD = secrets.token_urlsafe()
TOKEN = "a" * 32  # of the cookie and of the form


class Form(NamedTuple):
    """A form, and a table that sending it writes."""

    path: str
    table: str
    fields: dict[str, str]


FILTER = Form("/admin/payments/payment/save-filter", "payments_savedfilter", {"name": "Lamps", "query": "q=lamp"})
ORGANIZATION = {"id": "7", "name": "Books", "time_zone": "UTC", "keys-TOTAL_FORMS": "0", "keys-INITIAL_FORMS": "0"}
FORMS = {
    "log in": Form("/admin/login/", "payments_staffsession", {"username": "ann", "password": PASSWORD}),
    "log in, last login": Form("/admin/login/", "auth_user", {"username": "ann", "password": PASSWORD}),
    "log out": Form("/admin/logout/", "payments_staffsession", {}),
    "change password": Form(
        "/admin/password_change/",
        "auth_user",
        {"old_password": PASSWORD, "new_password1": "lamp-owl-7", "new_password2": "lamp-owl-7"},
    ),
    "save filter": FILTER,
    "choose columns": Form("/admin/payments/payment/columns", "payments_staffpreferences", {"column": "status"}),
    "add key": Form(
        "/admin/payments/apikey/add/",
        "payments_apikey",
        {"organization": f"{KEY}", "mode": "live", "scope": "read", "name": "Till"},
    ),
    "revoke key": Form(f"/admin/payments/apikey/{KEY}/revoke/", "payments_apikey", {}),
    "add organization": Form("/admin/payments/organization/add/", "payments_organization", ORGANIZATION),
    "record in history": Form("/admin/payments/organization/add/", "django_admin_log", ORGANIZATION),
    "change user": Form(f"/admin/auth/user/{KEY}/change/", "auth_user", {"username": "owl"}),
    "add user": Form(
        "/admin/auth/user/add/",
        "auth_user",
        {"username": "bob", "usable_password": "true", "password1": "lamp-owl-7", "password2": "lamp-owl-7"},
    ),
}


@pytest.fixture
def staff(quick_hasher: None, settings: Settings) -> Staff:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0.5  # a lock is waited for 0.2 s
    create_objects()
    return Staff.log_in(User.objects.create_superuser("ann", password=PASSWORD))


@pytest.fixture
def log() -> Iterator[Log]:
    with collected_log() as log:
        yield log


def send(form: Form, staff: Staff | None) -> Any:
    """Send a form. The service has no open connection yet, so its time limits count."""
    connection.close()
    cookies = f"csrftoken={TOKEN}" + (f"; sessionid={staff.session}" if staff else "")
    body = urlencode({**form.fields, "csrfmiddlewaretoken": TOKEN})
    media_type = "application/x-www-form-urlencoded"
    request = RequestFactory().post(form.path, body, content_type=media_type, headers={"Cookie": cookies})
    return call_wsgi(wsgi_application(), request.environ)


def form_id(staff: Staff) -> dict[str, str]:
    """Return the one-time ID in the form for a key."""
    return {"form_id": ApiKeyForm(user=staff.user).initial["form_id"]}


@pytest.mark.extended
@pytest.mark.parametrize("name", FORMS)
def test_form_that_cannot_be_written_gets_503_and_one_line_in_the_log(staff: Staff, log: Log, name: str) -> None:
    form = FORMS[name]
    if name == "add key":
        form = form._replace(fields={**form.fields, **form_id(staff)})

    with locked(form.table):
        response = send(form, None if name.startswith("log in") else staff)
    after = send(form, None if name.startswith("log in") else staff)

    assert (response.status_code, response.headers.get("Retry-After")) == (503, "1")
    assert [event["level"] for event in log.events] == ["ERROR"]
    assert "traceback" not in log.events[0]
    assert f"Service Unavailable: {form.path}: " in log.events[0]["message"]
    assert after.status_code == (200 if name in {"add key", "log out"} else 302)


def test_session_that_cannot_be_written_gets_503(staff: Staff, log: Log, settings: Settings) -> None:
    settings.SESSION_SAVE_EVERY_REQUEST = True
    form = Form("/admin/payments/payment/delete-filter", "payments_staffsession", {"name": "Lamps"})

    with locked(form.table):
        response = send(form, staff)

    assert (response.status_code, response.headers.get("Retry-After")) == (503, "1")
    assert [event["level"] for event in log.events] == ["ERROR"]
    assert f"Service Unavailable: {form.path}: " in log.events[0]["message"]


def test_session_that_another_request_has_deleted_gets_400(staff: Staff, log: Log, settings: Settings) -> None:
    settings.SESSION_SAVE_EVERY_REQUEST = True

    def log_out(**_arguments: Any) -> None:
        StaffSession.objects.all().delete()

    post_save.connect(log_out, sender=SavedFilter)
    try:
        response = send(FILTER, staff)
    finally:
        post_save.disconnect(log_out, sender=SavedFilter)

    assert response.status_code == 400
    assert "Your session has ended" in response.content.decode()
    assert log.lines == []
