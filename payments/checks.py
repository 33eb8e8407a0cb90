"""System checks: what the application needs of the project."""

import re
from collections.abc import Callable, Collection
from itertools import compress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, Error, NotSupportedError, connections, router
from django.urls import NoReverseMatch, reverse

from payments.conf import Settings, conf, is_time_zone
from payments.database.migration_state import explain_encoding
from payments.database.postgresql.planning import SESSION_SETTINGS
from payments.docs.pages import DIRECTORY, PAGES

VENDORS = {"postgresql", "sqlite"}

# The oldest supported version. Newer ones than those of the README are not refused.
POSTGRESQL_MIN = 15

# What may be wrong with the locale of the database, which PostgreSQL takes from the machine: conditions in SQL.
LOCALE_PROBLEMS = {
    "upper('i\u00e9') <> 'I\u00c9'": "In the locale of the database, some letters have no capitals: sign-in by email "
    "and the admin's search for names find them in the same case only. Create the database with --locale C.UTF-8.",
    "datcollversion <> pg_database_collation_actual_version(oid)": "The machine has another version of the database's "
    "locale: indexes may be wrong. Run REINDEX DATABASE, then ALTER DATABASE ... REFRESH COLLATION VERSION.",
}

# What the value of a setting must be.
RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "DEFAULT_TIME_ZONE": ("the name of a time zone, such as Europe/Amsterdam", is_time_zone),
    "PUBLIC_BASE_URL": (
        "a URL without a slash at its end, such as https://pay.example",
        lambda url: isinstance(url, str) and re.fullmatch(r"(https?://[^\s?#@\\]*[^\s?#@\\/])?", url) is not None,
    ),
    "RATE_LIMIT": (
        "None, or the requests and the seconds, such as (600, 60)",
        lambda rate: rate is None or (isinstance(rate, tuple | list) and [type(part) for part in rate] == [int, int]),
    ),
    "RUNTIME_DIRECTORY": ("a pathlib.Path", lambda path: isinstance(path, Path)),
}


@checks.register(checks.Tags.compatibility)
def project_uses_time_zones(**_options: Any) -> list[checks.CheckMessage]:
    if not settings.USE_TZ:
        text, hint = "USE_TZ is False, but times of payments are in UTC.", "Set USE_TZ."
    elif connections.settings[DEFAULT_DB_ALIAS]["TIME_ZONE"] not in {None, "UTC", "Etc/UTC"}:
        text, hint = "The database `default` has a TIME_ZONE, but times of payments are in UTC.", "Remove it."
    else:
        return []
    return [checks.Error(text, hint=hint, id="payments.E001")]


@checks.register(checks.Tags.compatibility)
def database_is_supported(**_options: Any) -> list[checks.CheckMessage]:
    """Refuse other databases: constraints, indexes and statements are written for these two."""
    from payments.models import Payment  # noqa: PLC0415  needs the applications

    alias = router.db_for_write(Payment)
    if alias != DEFAULT_DB_ALIAS:
        text, hint = f"The router sends payments to the database {alias}.", "Leave the application in `default`."
    elif connections[alias].vendor not in VENDORS:
        text, hint = "The database is neither PostgreSQL nor SQLite.", "Use one of these as `default`."
    else:
        return []
    return [checks.Error(text, hint=hint, id="payments.E002")]


@checks.register(checks.Tags.compatibility)
def driver_is_psycopg_3(**_options: Any) -> list[checks.CheckMessage]:
    if not any(settings["ENGINE"].endswith("postgresql") for settings in connections.settings.values()):
        return []
    from django.db.backends.postgresql.psycopg_any import is_psycopg3  # noqa: PLC0415  needs a driver

    if is_psycopg3:
        return []
    return [checks.Error("Django uses psycopg2.", hint="Uninstall psycopg2, install psycopg 3.", id="payments.E003")]


@checks.register(checks.Tags.database)
def server_is_supported(databases: Collection[str] | None = None, **_options: Any) -> list[checks.CheckMessage]:
    """Check the server of PostgreSQL before a migration. Our engine sets the session's settings; Django's does not."""
    if DEFAULT_DB_ALIAS not in (databases or ()) or connections[DEFAULT_DB_ALIAS].vendor != "postgresql":
        return []
    if problem := find_server_problem():
        return [checks.Error(problem, id="payments.E008")]
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'current_setting({name!r})' for name in SESSION_SETTINGS)}")
        values = dict(zip(SESSION_SETTINGS, cursor.fetchone(), strict=True))
        conditions = ", ".join(LOCALE_PROBLEMS)
        cursor.execute(f"SELECT {conditions} FROM pg_database WHERE datname = current_database()")  # noqa: S608
        problems = compress(LOCALE_PROBLEMS.values(), cursor.fetchone())
    return [
        *(
            checks.Error(
                f"The session has {name} = {value}.", hint=f"Set {SESSION_SETTINGS[name]}.", id="payments.E009"
            )
            for name, value in values.items()
            if not value.startswith(SESSION_SETTINGS[name])
        ),
        *(checks.Warning(problem, id="payments.W010") for problem in problems),
    ]


def find_server_problem() -> str | None:
    """Return why the server or the database cannot be used, and what to do."""
    try:
        version, *_ = connections[DEFAULT_DB_ALIAS].get_database_version()
    except NotSupportedError:  # Django refuses still older versions when it connects
        version = None
    if version is not None and version >= POSTGRESQL_MIN:
        return explain_encoding(DEFAULT_DB_ALIAS)
    return f"PostgreSQL{f' {version}' if version else ''} is too old. Use PostgreSQL {POSTGRESQL_MIN} or newer."


@checks.register(checks.Tags.compatibility, deploy=True)
def server_is_suitable(**_options: Any) -> list[checks.CheckMessage]:
    try:
        return server_is_supported(databases=[DEFAULT_DB_ALIAS])
    except Error:
        return []


@checks.register(checks.Tags.compatibility)
def settings_are_valid(**_options: Any) -> list[checks.CheckMessage]:
    """Refuse values whose errors a request would be the first to meet. Name settings that the application ignores."""
    names = {name.removeprefix("PAYMENTS_") for name in dir(settings) if name.startswith("PAYMENTS_")}
    unknown = sorted(names - vars(Settings).keys())
    ignored = [f"PAYMENTS_{name} is not a setting of the application." for name in unknown]
    invalid = [
        f"PAYMENTS_{name} must be {rule}." for name, (rule, is_met) in RULES.items() if not is_met(getattr(conf, name))
    ]
    hint = "See payments/conf.py."
    return [
        *(checks.Error(text, hint=hint, id="payments.E004") for text in invalid),
        *(checks.Warning(text, hint=hint, id="payments.W005") for text in ignored),
    ]


@checks.register(checks.Tags.urls)
def links_can_be_made(**_options: Any) -> list[checks.CheckMessage]:
    if not getattr(settings, "ROOT_URLCONF", None):
        return []
    try:
        reverse("payments:payment-list")
    except NoReverseMatch:
        text = "The project's URLs do not include payments.urls, or give them another namespace."
        hint = 'Add path("billing/", include("payments.urls")) to the URLs. Responses of the API contain links.'
        return [checks.Warning(text, hint=hint, id="payments.W006")]
    return []


@checks.register(checks.Tags.compatibility)
def documentation_is_complete(**_options: Any) -> list[checks.CheckMessage]:
    if all((DIRECTORY / page.file).is_file() for page in PAGES):
        return []
    text, hint = f"The documentation is not in {DIRECTORY}.", "Install the wheel, or use the whole repository."
    return [checks.Warning(text, hint=hint, id="payments.W007")]
