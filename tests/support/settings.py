"""The settings of the service, with changes that make tests faster.

They choose the database of a test run: `pytest --database sqlite`, `postgresql` or `citus`. pytest-django reads them
before it loads tests/conftest.py, so the option is parsed here. Workers of pytest-xdist inherit the variables.
"""

import os
from argparse import ArgumentParser

from payments_site.environment import SQLITE
from tests.support.ports import free_port
from tests.support.waiting import SECONDS_MAX


def choose_database() -> None:
    """Set the variables of the database that the command line names. Its server may start later."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--database", default="sqlite")
    name = os.environ["TEST_DATABASE"] = parser.parse_known_args()[0].database
    os.environ.pop("DATABASE_URL", None)  # of the service
    if name != "sqlite":
        os.environ["DATABASE_URL"] = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
        os.environ["SECRET_KEY"] = "for-tests-alone-0123456789-abcdefghijklmnopqrstuvwxyz"  # noqa: S105  only of tests
    if name == "postgresql" and "TEST_DATABASE_URL" in os.environ:
        os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]


if "TEST_DATABASE" not in os.environ:
    choose_database()

from payments_site.settings import *  # noqa: E402, F403

# A busy machine must not change the result of a test.
PAYMENTS_REQUEST_SECONDS_MAX = 60
SQLITE["OPTIONS"]["timeout"] = SECONDS_MAX  # for a lock

# Hashing a password in production takes a quarter of a second.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher",
    "payments.access.password_hasher.SerialPasswordHasher",  # for users of a deployed service
]

# Find a static file when it is requested. Otherwise each of a thousand test clients first lists all static files.
STORAGES = {"staticfiles": {"BACKEND": "tests.support.static_files.StrictStaticFiles"}}
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = True

# The log of a test does not depend on the lines of earlier tests.
LOGGING["handlers"]["console"]["filters"].remove("repetition")  # noqa: F405
