"""PostgreSQL's version, and the settings of a session that statements rely on."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from pytest_django import Settings

from payments import checks
from payments.access.keys import find_key
from payments.admin.payments.search import fetch_search
from payments.database.postgresql.planning import planned_as_pages
from payments.models import Access, ApiKey, DayKind, Payment
from payments.totals.daily import Calendar, compute_totals
from tests.support.connecting import connected_to
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.lines import export_payments
from tests.support.lists import list_page, read_changes, read_page, searchable_list
from tests.support.ports import free_port
from tests.support.sql import execute, fetch_value

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql")]

ACCESS = Access(1, "live")

# Settings of a role that change what a statement finds, or the form of its values.
HOSTILE = {
    "gin_fuzzy_search_limit": "1",
    "DateStyle": "SQL, DMY",
    "extra_float_digits": "-15",
    "standard_conforming_strings": "off",
    "default_transaction_isolation": "serializable",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kolkata",
    "client_encoding": "LATIN1",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "bytea_output": "escape",
}


@pytest.fixture
def hostile_url() -> Iterator[str]:
    """The URL of the test database for a role with hostile settings."""
    execute("CREATE ROLE hostile SUPERUSER LOGIN")
    for name, value in HOSTILE.items():
        execute(f"ALTER ROLE hostile SET {name} = {value if name == 'DateStyle' else repr(value)}")
    info = connection.connection.info
    yield f"postgresql://hostile@{info.host}:{info.port}/{info.dbname}"
    execute("DROP ROLE hostile")


def read_everything(digest: str) -> list[Any]:
    """Return what a key, the list, filters, the feed, the export, the search and the totals read."""
    words, searched = (":tea", ":it\N{CYRILLIC SMALL LETTER ZHE}", "=10.00"), searchable_list(ACCESS)
    return [
        find_key(digest),
        read_page(ACCESS),
        read_page(ACCESS, {"metadata[a]": "b\\'c", "createdAt[gte]": "2026-01-01"}),
        read_page(ACCESS, {"method": "creditcard", "from": "pt_2"}),
        read_changes(ACCESS),
        list(export_payments(Payment.objects.visible_to(ACCESS))),
        [list_page(fetch_search(searched, [word], start=None, limit=50).page) for word in words],
        compute_totals(Calendar(ACCESS, DayKind.CREATED, "UTC"), [NOON.date()]),
    ]


def test_settings_of_a_role_change_nothing(hostile_url: str) -> None:
    key = ApiKeyFactory.create(organization=OrganizationFactory.create(id=1))
    for number in range(20):
        values = {"description": "Tea (it\N{CYRILLIC SMALL LETTER ZHE} \\u0041)", "metadata": '{"a":"b\\\\\'c"}'}
        PaymentFactory.create(id=f"pt_{number}", organization=key.organization, **values)
    execute("VACUUM ANALYZE payments_payment")
    expected = read_everything(key.digest)

    with connected_to(hostile_url), planned_as_pages():
        execute("SET enable_indexscan = off")  # so that filters and searches use their GIN indexes
        assert read_everything(key.digest) == expected
        assert ApiKey.objects.get(pk=key.pk).last_used_at == key.last_used_at
        assert fetch_value("SHOW transaction_isolation") == "read committed"

    assert [len(page.ids) for page in expected[1:4]] == [20, 20, 3]


def test_check_names_a_setting_that_statements_rely_on() -> None:
    assert checks.server_is_supported(databases=["default"]) == []

    execute("SET gin_fuzzy_search_limit = 5")
    try:
        [error] = checks.server_is_supported(databases=["default"])
    finally:
        execute("RESET gin_fuzzy_search_limit")

    assert (error.msg, error.hint) == ("The session has gin_fuzzy_search_limit = 5.", "Set 0.")


def test_old_server_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.PORT = free_port()
    monkeypatch.setattr(checks, "POSTGRESQL_MIN", 99)
    [version, *_] = connection.get_database_version()
    message = f"PostgreSQL {version} is too old. Use PostgreSQL 99 or newer."

    with pytest.raises(SystemCheckError, match=re.escape(f"(payments.E008) {message}")):
        call_command("migrate", skip_checks=False)
    with pytest.raises(CommandError) as start:
        call_command("start", check=True)

    assert str(start.value) == message


def test_version_that_django_refuses_is_refused_in_one_line(hostile_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.db.backends.base.base.RAN_DB_VERSION_CHECK", set())

    with connected_to(hostile_url):
        monkeypatch.setattr(connection.features, "minimum_database_version", (99,))
        assert checks.find_server_problem() == "PostgreSQL is too old. Use PostgreSQL 15 or newer."
